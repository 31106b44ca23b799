#include "core/view.h"

#include <gtest/gtest.h>

#include <limits>

#include "penstock/error.h"

namespace penstock::core {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(View, ExtentCountsFromTheFirstToTheLastElement) {
  EXPECT_EQ(view_extent({}, {}), 1);
  EXPECT_EQ(view_extent({3, 4}, {4, 1}), 12);
  EXPECT_EQ(view_extent({3, 4}, {10, 2}), 27);
  EXPECT_EQ(view_extent({5}, {0}), 1) << "one element, repeated";
  EXPECT_EQ(view_extent({3, 0}, {kMax, kMax}), 0);
}

TEST(View, ExtentThatDoesNotFitIsNothing) {
  EXPECT_EQ(view_extent({3}, {kMax / 2 + 1}), std::nullopt);
  EXPECT_EQ(view_extent({2, 2}, {kMax, kMax}), std::nullopt);
  EXPECT_EQ(view_extent({2}, {kMax}), std::nullopt) << "the count is one more than the last index";
  EXPECT_EQ(view_extent({2}, {kMax - 1}), kMax);
}

TEST(View, SpanIsTheExtentInBytes) {
  EXPECT_EQ(view_span({3, 4}, {10, 2}, 4), 108U);
  EXPECT_EQ(view_span({3, 0}, {kMax, kMax}, 4), 0U);
  EXPECT_EQ(view_span({2}, {kMax - 1}, 1), kMax);
  EXPECT_EQ(view_span({2}, {kMax - 1}, 2), std::nullopt);
  EXPECT_EQ(view_span({2}, {kMax}, 1), std::nullopt);
  EXPECT_EQ(view_span({1}, {1}, std::numeric_limits<std::size_t>::max()), std::nullopt);
}

TEST(View, COrderIgnoresSizesOfOne) {
  EXPECT_TRUE(is_c_order({2, 3}, {3, 1}));
  EXPECT_TRUE(is_c_order({2, 1, 3}, {3, 99, 1}));
  EXPECT_TRUE(is_c_order({0, 3}, {7, 7}));
  EXPECT_FALSE(is_c_order({2, 3}, {1, 2}));
  EXPECT_FALSE(is_c_order({4}, {0}));
}

TEST(View, SlicesMoveTheFirstElement) {
  Shape shape{4, 6};
  Strides strides{6, 1};
  EXPECT_EQ(slice_view(shape, strides, 1, -5, 100, 2), 1);
  EXPECT_EQ(shape, (Shape{4, 3}));
  EXPECT_EQ(strides, (Strides{6, 2}));
  EXPECT_EQ(select_view(shape, strides, 0, -1), 18);
  EXPECT_EQ(shape, Shape{3});
  EXPECT_EQ(slice_view(shape, strides, 0, 2, 1, 1), 0) << "nothing is left";
  EXPECT_EQ(shape, Shape{0});
  EXPECT_THROW(select_view(shape, strides, 0, 0), Error);
  EXPECT_THROW(slice_view(shape, strides, 1, 0, 1, 1), Error);
  EXPECT_THROW(slice_view(shape, strides, 0, 0, 1, 0), Error);
}

}  // namespace
}  // namespace penstock::core
