#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "penstock/error.h"
#include "penstock/tensor.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::counting;

TEST(Elements, AtIsTheElementOfAnyLayout) {
  const Tensor tensor = counting<std::int64_t>({2, 3, 4});
  for (const Tensor& view : {tensor, tensor.transpose(0, 2), tensor.slice(2, 1, 4, 2), tensor.select(1, 2)}) {
    const Tensor flat = view.contiguous().reshape({-1});
    const std::int64_t planes = view.rank() == 3 ? view.shape()[2] : 1;
    for (std::int64_t i = 0; i < view.numel(); ++i) {
      const std::int64_t row = i / planes / view.shape()[1];
      const std::int64_t column = i / planes % view.shape()[1];
      const std::int64_t found =
          view.rank() == 3 ? view.at<std::int64_t>(row, column, i % planes) : view.at<std::int64_t>(row, column);
      ASSERT_EQ(found, flat.at<std::int64_t>(i));
    }
  }
  tensor.at<std::int64_t>(-1, -1, -1) = 99;
  EXPECT_EQ(tensor.at<const std::int64_t>(1, 2, 3), 99);
  EXPECT_EQ(tensor[1][2].at<std::int64_t>(3), 99) << "a temporary gives the value";
  EXPECT_EQ(Tensor::of({5}).reshape({}).at<int>(), 5);
}

TEST(Elements, AtRefusesWhatIsNotThere) {
  const Tensor tensor = counting<std::int64_t>({2, 3});
  EXPECT_EQ(test::code_of([&] { tensor.at<std::int64_t>(2, 0); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { tensor.at<std::int64_t>(0, -4); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { tensor.at<std::int64_t>(0); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { tensor.at<std::int64_t>(0, 0, 0); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { tensor.at<double>(0, 0); }), ErrorCode::kDTypeMismatch);
  const Tensor fixed(Buffer::wrap(tensor.data(), 48, std::make_shared<Tensor>(tensor), true), DType::int64, {6});
  EXPECT_EQ(fixed.at<const std::int64_t>(5), 5);
  EXPECT_EQ(test::code_of([&] { fixed.at<std::int64_t>(5); }), ErrorCode::kInvalidArgument);
  const Tensor askew(tensor.buffer(), DType::int64, {1}, {1}, 3);
  EXPECT_EQ(test::code_of([&] { askew.at<std::int64_t>(0); }), ErrorCode::kShapeMismatch);
}

TEST(Elements, OfTakesAnyContiguousRange) {
  const std::vector<float> vector = {1, 2, 3};
  EXPECT_TRUE(Tensor::identical(Tensor::of(vector), Tensor::of({1.0F, 2.0F, 3.0F})));
  EXPECT_TRUE(Tensor::identical(Tensor::of(std::span(vector)), Tensor::of(vector)));
  EXPECT_TRUE(Tensor::identical(Tensor::of(std::array<double, 2>{1, 2}), Tensor::of({1.0, 2.0})));
  EXPECT_EQ(Tensor::of(std::vector<std::complex<double>>(4)).dtype(), DType::complex128);
  EXPECT_EQ(Tensor::of(std::vector<int>()).shape(), Shape{0});
}

TEST(Elements, HalvesHaveTypesOfTheirOwn) {
  const Tensor halves = Tensor::of({float16(0.5F), float16(-2.0F)});
  EXPECT_EQ(halves.dtype(), DType::float16);
  EXPECT_EQ(float(halves.values<const float16>()[1]), -2.0F);
  EXPECT_EQ(halves.select(0, 0).item<float>(), 0.5F);
  EXPECT_EQ(Tensor::of({bfloat16(3.0F)}).dtype(), DType::bfloat16);
  EXPECT_EQ(float(Tensor::of({1.0}).item<bfloat16>()), 1.0F);
  EXPECT_EQ(test::code_of([&] { halves.values<bfloat16>(); }), ErrorCode::kDTypeMismatch);
}

}  // namespace
}  // namespace penstock
