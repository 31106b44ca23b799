#include "data/sample/layout.h"

#include <gtest/gtest.h>

namespace penstock::data {
namespace {

TensorLayout tensor(const Shape& shape) { return {DType::float32, shape, shape.contiguous_strides()}; }

TEST(TensorLayout, KnowsWhetherItIsContiguous) {
  EXPECT_TRUE(tensor(Shape{2, 3}).contiguous);
  EXPECT_EQ(tensor(Shape{2, 3}).nbytes, 24u);
  EXPECT_FALSE(TensorLayout(DType::float32, Shape{2, 3}, Strides{1, 2}).contiguous);
  EXPECT_TRUE(TensorLayout(DType::float32, Shape{1, 3}, Strides{99, 1}).contiguous) << "a size of 1 has any stride";
  EXPECT_TRUE(TensorLayout(DType::float32, Shape{0, 3}, Strides{1, 7}).contiguous) << "nothing lies anyhow";
  EXPECT_TRUE(tensor(Shape{}).contiguous);
}

TEST(Layouts, TuplesJoinTheirParts) {
  StructureInterner interner;
  const LayoutPtr a = single_tensor_layout(tensor(Shape{3}));
  const LayoutPtr b = single_tensor_layout(tensor(Shape{4}));
  const LayoutPtr both = tuple_layout(std::vector{a, b}, interner);
  const LayoutPtr nested = tuple_layout(std::vector{both, a}, interner);
  ASSERT_EQ(nested->tensors.size(), 3u);
  EXPECT_EQ(nested->tensors[1].shape, Shape{4});
  ASSERT_EQ(nested->structure->leaves.size(), 3u);
  EXPECT_EQ(nested->structure->leaves[1].path, "[0][1]");
  EXPECT_EQ(nested->structure->leaves[2].number, 2u);
  EXPECT_EQ(nested->structure->root.children[0].children[1].leaf, 1u);
  EXPECT_EQ(nested->structure->root.children[1].leaf, 2u);
}

TEST(Layouts, EqualStructuresBecomeOne) {
  StructureInterner interner;
  const LayoutPtr a = single_tensor_layout(tensor(Shape{3}));
  const LayoutPtr b = single_tensor_layout(tensor(Shape{4}));
  const LayoutPtr ab = tuple_layout(std::vector{a, b}, interner);
  EXPECT_EQ(ab->structure, tuple_layout(std::vector{b, b}, interner)->structure);
  EXPECT_NE(ab->structure, tuple_layout(std::vector{a, b, b}, interner)->structure);
  EXPECT_FALSE(*ab->structure == *a->structure);
}

TEST(Layouts, TheInternerForgetsButStaysRight) {
  StructureInterner interner;
  LayoutPtr layout = single_tensor_layout(tensor(Shape{3}));
  const StructurePtr first = tuple_layout(std::vector{layout}, interner)->structure;
  LayoutPtr deep = layout;
  for (int i = 0; i < 100; ++i) deep = tuple_layout(std::vector{deep}, interner);
  const StructurePtr again = tuple_layout(std::vector{layout}, interner)->structure;
  EXPECT_TRUE(*again == *first);
}

}  // namespace
}  // namespace penstock::data
