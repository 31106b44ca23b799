#include "penstock/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock {
namespace {

using test::code_of;

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

std::vector<std::int64_t> to_vector(const Shape& shape) { return {shape.begin(), shape.end()}; }

TEST(Shape, TheEmptyShapeHasOneElement) {
  EXPECT_EQ(Shape().rank(), 0U);
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().to_string(), "()");
  EXPECT_EQ(Shape{}.contiguous_strides(), Shape());
}

TEST(Shape, ReadsAsInPython) {
  EXPECT_EQ((Shape{3}).to_string(), "(3,)");
  EXPECT_EQ((Shape{3, 4}).to_string(), "(3, 4)");
}

TEST(Shape, CopiesAndMovesKeepContentAtEveryRank) {
  for (std::size_t rank = 0; rank <= Shape::kMaxRank; ++rank) {
    Shape pushed;
    std::vector<std::int64_t> dims;
    for (std::size_t i = 0; i < rank; ++i) {
      dims.push_back(static_cast<std::int64_t>(i + 1));
      pushed.push_back(dims.back());
    }
    const Shape built{std::span<const std::int64_t>(dims)};
    EXPECT_EQ(pushed, built);
    Shape copy = built;
    EXPECT_EQ(to_vector(copy), dims);
    Shape moved = std::move(copy);
    EXPECT_EQ(to_vector(moved), dims);
    EXPECT_EQ(copy.rank(), 0U);  // NOLINT(bugprone-use-after-move): a moved-from shape is ()
    copy.push_back(9);
    EXPECT_EQ(copy, Shape{9});
    copy = moved;
    EXPECT_EQ(to_vector(copy), dims);
    copy = *&copy;
    EXPECT_EQ(to_vector(copy), dims);
    Shape other{7, 7};
    other = std::move(copy);
    EXPECT_EQ(to_vector(other), dims);
  }
}

TEST(Shape, MoreThanTheLargestRankIsRefused) {
  const std::vector<std::int64_t> dims(Shape::kMaxRank + 1, 1);
  EXPECT_EQ(code_of([&] { Shape{std::span<const std::int64_t>(dims)}; }), ErrorCode::kLimit);
  Shape full{std::span<const std::int64_t>(dims).subspan(1)};
  EXPECT_EQ(code_of([&] { full.push_back(1); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([&] { full.prepend(1); }), ErrorCode::kLimit);
}

TEST(Shape, CountsWithoutWrapping) {
  EXPECT_EQ((Shape{kHuge}).numel(), kHuge);
  EXPECT_EQ(code_of([] { Shape{kHuge, 2}.numel(); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([] { Shape{1LL << 32, 1LL << 32, 1LL << 32}.numel(); }), ErrorCode::kLimit);
  EXPECT_EQ((Shape{kHuge, kHuge, 0}).numel(), 0);
  EXPECT_EQ(code_of([] { Shape{2, kHuge, kHuge, 3}.contiguous_strides(); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([] { Shape{3, kHuge, kHuge, 2}.fortran_strides(); }), ErrorCode::kLimit);
}

TEST(Shape, NegativeDimensionsAreCorrupt) {
  EXPECT_EQ(code_of([] { Shape{-1}.numel(); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { Shape{0, -1}.numel(); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { Shape{std::numeric_limits<std::int64_t>::min(), -1}.numel(); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { Shape{2, -3}.contiguous_strides(); }), ErrorCode::kCorrupt);
}

TEST(Shape, StridesOfSizeZeroCountAsOne) {
  EXPECT_EQ((Shape{2, 0, 3}).contiguous_strides(), (Shape{3, 3, 1}));
  EXPECT_EQ((Shape{2, 0, 3}).fortran_strides(), (Shape{1, 2, 2}));
}

TEST(Shape, StridesNumberTheElementsInOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Shape shape;
    for (auto rank = random() % 6; rank > 0; --rank) shape.push_back(1 + random() % 4);
    const Strides c = shape.contiguous_strides();
    const Strides f = shape.fortran_strides();
    std::vector<std::int64_t> index(shape.rank());
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      std::int64_t rest = i;
      std::int64_t at_c = 0;
      std::int64_t at_f = 0;
      std::int64_t expected_f = 0;
      std::int64_t weight = 1;
      for (std::size_t d = shape.rank(); d-- > 0;) {
        index[d] = rest % shape[d];
        rest /= shape[d];
        at_c += index[d] * c[d];
      }
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        at_f += index[d] * f[d];
        expected_f += index[d] * weight;
        weight *= shape[d];
      }
      ASSERT_EQ(at_c, i) << shape;
      ASSERT_EQ(at_f, expected_f) << shape;
    }
  }
}

TEST(Shape, DropsAndPrepends) {
  EXPECT_EQ((Shape{2, 3, 4}).drop_front(1), (Shape{3, 4}));
  EXPECT_EQ((Shape{2}).drop_front(1), Shape());
  EXPECT_EQ((Shape{2}).drop_front(5), Shape());
  EXPECT_EQ((Shape{3, 4}).prepend(2), (Shape{2, 3, 4}));
  EXPECT_EQ(Shape().prepend(2), Shape{2});
}

TEST(Shape, Compares) {
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
}

TEST(Shape, CountsNegativeDimensionsFromTheEndAndRefusesOthers) {
  Shape shape{2, 3};
  EXPECT_EQ(shape[-1], 3);
  EXPECT_EQ(shape[std::int8_t{-2}], 2);
  EXPECT_EQ(shape[1U], 3);
  shape[-1] = 4;
  EXPECT_EQ(shape, (Shape{2, 4}));
  EXPECT_EQ(code_of([&] { return shape[2]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { return shape[-3]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { return shape[std::numeric_limits<std::size_t>::max()]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([] { return Shape()[0]; }), ErrorCode::kIndexOutOfRange);
}

TEST(Shape, IsMadeOfAnyIntegers) {
  const std::size_t batch = 5;
  EXPECT_EQ((Shape{batch, 3U, std::int16_t{-1}}).to_string(), "(5, 3, -1)");
  EXPECT_EQ((Shape{1, 2, 3, 4, 5, 6, 7, batch}).rank(), 8U);
  EXPECT_EQ(code_of([&] { Shape{batch - 6}; }), ErrorCode::kInvalidArgument);
  const std::vector<std::int64_t> many(65, 1);
  EXPECT_EQ(code_of([&] { Shape{many}; }), ErrorCode::kLimit);
}

}  // namespace
}  // namespace penstock
