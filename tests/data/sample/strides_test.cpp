#include "data/sample/strides.h"

#include <gtest/gtest.h>

#include "data/sample/layout.h"

namespace penstock::data {
namespace {

TEST(Strides, ACopyKeepsWhatHasNoGaps) {
  const Strides channels_last = {60, 1, 15, 3};
  EXPECT_EQ(dense_strides({2, 3, 4, 5}, channels_last), channels_last);
  EXPECT_EQ(dense_strides({1, 4}, {7, 1}), (Strides{7, 1}));
  EXPECT_EQ(dense_strides({3, 0}, {9, 9}), (Strides{9, 9}));
}

TEST(Strides, ACopyClosesGapsAndKeepsTheOrderOfDimensions) {
  EXPECT_EQ(dense_strides({4, 5}, {8, 1}), (Strides{5, 1}));
  EXPECT_EQ(dense_strides({5, 4}, {1, 8}), (Strides{1, 5}));
  EXPECT_EQ(dense_strides({20}, {2}), (Strides{1}));
  EXPECT_EQ(dense_strides({2, 3, 4, 5}, {96, 1, 24, 3}), (Strides{60, 1, 15, 3}));
}

// What torch.empty_strided(shape, strides).clone().stride() gives.
TEST(Strides, RepeatedElementsTakeThePlaceThatTorchGivesThem) {
  EXPECT_EQ(dense_strides({4, 3}, {0, 1}), (Strides{3, 1}));
  EXPECT_EQ(dense_strides({4, 3}, {1, 0}), (Strides{3, 1}));
  EXPECT_EQ(dense_strides({2, 3, 4}, {1, 0, 2}), (Strides{1, 2, 6}));
}

TEST(Strides, ChannelsLastIsWhatTorchTakesForIt) {
  EXPECT_TRUE(is_channels_last({2, 3, 4, 5}, {60, 1, 15, 3}));
  EXPECT_TRUE(is_channels_last({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3}));
  EXPECT_FALSE(is_channels_last({2, 3, 4, 5}, {60, 20, 5, 1}));
  EXPECT_FALSE(is_channels_last({2, 3, 1, 1}, {3, 1, 1, 1}));
  EXPECT_FALSE(is_channels_last({3, 4, 5}, {1, 15, 3}));
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5}), (Strides{60, 1, 15, 3}));
}

TEST(Strides, ALayoutReachesToBehindItsLastElement) {
  EXPECT_EQ(TensorLayout(DType::float32, {4, 5}, {8, 1}).extent(), 29U * 4);
  EXPECT_EQ(TensorLayout(DType::float32, {4, 5}, {0, 1}).extent(), 5U * 4);
  EXPECT_EQ(TensorLayout(DType::float32, {4, 5}, {5, 1}).extent(), 20U * 4);
  EXPECT_EQ(TensorLayout(DType::float32, {0, 5}, {8, 1}).extent(), 0U);
}

}  // namespace
}  // namespace penstock::data
