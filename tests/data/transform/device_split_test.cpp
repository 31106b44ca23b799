#include "data/transform/device_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace penstock::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TensorLayout image(const DType& dtype = DType::uint8, const Shape& shape = {3, 6, 8}) {
  return {dtype, shape, shape.contiguous_strides()};
}

std::vector<std::string> names(const std::vector<Op>& ops) {
  std::vector<std::string> out;
  for (const Op& op : ops) out.emplace_back(name_of(op));
  return out;
}

NormalizeOp channels(std::int64_t dim = 0) { return {.mean = {1, 2, 3}, .std = {4, 5, 6}, .dim = dim}; }

NormalizeOp left(const std::optional<DeviceSplit>& split) { return std::get<NormalizeOp>(split.value().there.back()); }

TEST(DeviceSplit, ArithmeticThatMakesElementsLargerIsLeft) {
  const auto split = split_for_device({CastOp{DType::float32}, ScaleOp{0.5}, channels()}, image());
  ASSERT_TRUE(split);
  EXPECT_THAT(split->here, IsEmpty());
  EXPECT_THAT(names(split->there), ElementsAre("cast", "scale", "normalize"));
}

TEST(DeviceSplit, NothingIsLeftWhereNoByteIsSaved) {
  EXPECT_FALSE(split_for_device({ScaleOp{2}, channels()}, image(DType::float32)));
  EXPECT_FALSE(split_for_device({CastOp{DType::uint8}}, image(DType::float32)));
  EXPECT_FALSE(split_for_device({PermuteOp{{2, 0, 1}}}, image()));
  EXPECT_FALSE(split_for_device({CastOp{DType::float32}, CastOp{DType::uint8}}, image()));
}

TEST(DeviceSplit, TheCutLiesWhereElementsAreSmallestAndAsLateAsCanBe) {
  const auto split =
      split_for_device({CastOp{DType::float64}, ScaleOp{2}, CastOp{DType::float16}, ScaleOp{3}, CastOp{DType::float32}},
                       image(DType::int32));
  ASSERT_TRUE(split);
  EXPECT_THAT(names(split->here), ElementsAre("cast", "scale", "cast", "scale"));
  EXPECT_THAT(names(split->there), ElementsAre("cast"));
}

TEST(DeviceSplit, MovesAreDoneHere) {
  const auto split = split_for_device({CastOp{DType::float32}, CropOp{.begin = {0, 0}, .size = {2, 2}, .dims = {}},
                                       channels(), PermuteOp{{1, 2, 0}}, FlipOp{{0}}},
                                      image());
  ASSERT_TRUE(split);
  EXPECT_THAT(names(split->here), ElementsAre("crop", "permute", "flip"));
  EXPECT_EQ(left(split).dim, 2);
}

TEST(DeviceSplit, ValuesGoWithTheirChannels) {
  const auto flipped = split_for_device({CastOp{DType::float32}, channels(), FlipOp{{0}}}, image());
  EXPECT_THAT(left(flipped).mean, ElementsAre(3, 2, 1));
  EXPECT_THAT(left(flipped).std, ElementsAre(6, 5, 4));
  const CropOp last_two{.begin = {1}, .size = {2}, .dims = {-1}};
  const auto cropped =
      split_for_device({CastOp{DType::float32}, channels(2), last_two}, image(DType::uint8, {4, 4, 3}));
  EXPECT_THAT(left(cropped).mean, ElementsAre(2, 3));
  EXPECT_EQ(left(cropped).dim, 2);
}

TEST(DeviceSplit, RandomMovesOfChannelsAreNotParted) {
  const FlipOp flip{.dims = {0}, .probability = 0.5};
  EXPECT_FALSE(split_for_device({CastOp{DType::float32}, channels(), flip}, image()));
  const NormalizeOp one{.mean = {1}, .std = {2}, .dim = 0};
  EXPECT_TRUE(split_for_device({CastOp{DType::float32}, one, flip}, image()));
  EXPECT_TRUE(split_for_device({CastOp{DType::float32}, flip, channels()}, image()));
}

TEST(DeviceSplit, PaddingAndWhatMayBeRefusedStayHere) {
  const PadOp pad{.before = {1}, .after = {1}, .value = 7, .dims = {}};
  EXPECT_FALSE(split_for_device({CastOp{DType::float32}, pad}, image()));
  EXPECT_FALSE(split_for_device({CastOp{DType::float32, true}}, image()));
  EXPECT_FALSE(split_for_device({OneHotOp{9}}, image()));
  EXPECT_FALSE(split_for_device({CastOp{DType::float32}, ClampOp{0, 1}}, image()));
  const auto padded_first = split_for_device({pad, CastOp{DType::float32}}, image());
  ASSERT_TRUE(padded_first);
  EXPECT_THAT(names(padded_first->here), ElementsAre("pad"));
}

}  // namespace
}  // namespace penstock::data
