// Crops of several parts of a sample at one place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "data/support.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// 0, 1, 2, ... in each row.
Dataset ramps(std::int64_t count, std::int64_t length) {
  Tensor out = Tensor::empty(Shape{count, length}, DType::int64);
  for (std::int64_t i = 0; i < count * length; ++i) {
    out.values<std::int64_t>()[static_cast<std::size_t>(i)] = i % length;
  }
  return rows(out);
}

std::vector<std::int64_t> numbers(const Value& part) { return test::values_of<std::int64_t>(part.as_tensor()); }

/// Whatever lengths and scales: both begin at one place, and keep their scale times the size.
TEST(Scales, PartsOfAnyRateBeginAtOnePlace) {
  std::mt19937 random(5);
  const auto upto = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % most); };
  for (int round = 0; round < 200; ++round) {
    const std::int64_t size = upto(6);
    const std::int64_t a = upto(9);
    const std::int64_t b = upto(9);
    const std::int64_t frames = size + upto(20);
    // One part is a little longer than the other, as the frames of a mel are.
    const Dataset both = zip({{"audio", ramps(3, (frames + upto(2)) * a + upto(a) - 1)},
                              {"mel", ramps(3, frames * b + upto(b) - 1)},
                              {"text", ramps(3, 2)}});
    const Value sample = both.random_crop({size}, {}, {}, {{"audio", a}, {"mel", b}}).get(round % 3);
    const auto audio = numbers(sample["audio"]);
    const auto mel = numbers(sample["mel"]);
    ASSERT_EQ(audio.size(), static_cast<std::size_t>(size * a));
    ASSERT_EQ(mel.size(), static_cast<std::size_t>(size * b));
    ASSERT_EQ(audio[0] % a, 0);
    ASSERT_EQ(audio[0] / a, mel[0] / b);
    ASSERT_EQ(mel[0] % b, 0);
    ASSERT_EQ(audio.back(), audio[0] + size * a - 1);
    ASSERT_EQ(numbers(sample["text"]).size(), 2u) << "parts without a scale stay";
  }
}

TEST(Scales, EachPlaceThatAllHaveRoomAtComes) {
  const Dataset both = zip(ramps(300, 40), ramps(300, 5));
  const Dataset cropped = both.random_crop({2}, {}, {}, {{"0", 8}, {"1", 1}});
  std::set<std::int64_t> begins;
  for (std::int64_t i = 0; i < 300; ++i) {
    const Value sample = cropped.get(i);
    ASSERT_EQ(numbers(sample[0])[0], numbers(sample[1])[0] * 8);
    begins.insert(numbers(sample[1])[0]);
  }
  EXPECT_EQ(begins, (std::set<std::int64_t>{0, 1, 2, 3}));
}

TEST(Scales, HoldAlongSeveralDimensionsBehindOtherSteps) {
  const Tensor image = arange(0, 24 * 32, 1).reshape({1, 24, 32}).to(DType::int64);
  const Tensor coarse = arange(0, 12 * 16, 1).reshape({1, 12, 16}).to(DType::int64);
  const Dataset both = zip({{"image", rows(image)}, {"mask", rows(coarse)}});
  const Dataset cropped =
      both.random_flip().random_crop({4, 5}, {}, {}, {{"image", 2}, {"mask", 1}}).random_flip({0, 1});
  const Value sample = cropped.get(0);
  const Tensor x = sample["image"].as_tensor();
  const Tensor y = sample["mask"].as_tensor();
  EXPECT_EQ(x.shape(), (Shape{8, 10}));
  EXPECT_EQ(y.shape(), (Shape{4, 5}));
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      const auto fine = x[i * 2][j * 2].item<std::int64_t>();
      const auto rough = y[i][j].item<std::int64_t>();
      EXPECT_EQ(fine / 32 / 2, rough / 16);
      EXPECT_EQ(fine % 32 / 2, rough % 16);
    }
  }
}

TEST(Scales, AreTheSameForAnyNumberOfWorkersAndOtherEachEpoch) {
  const Dataset both = zip({{"a", ramps(50, 64)}, {"b", ramps(50, 16)}}).random_crop({4}, {}, {}, {{"a", 4}, {"b", 1}});
  const auto epoch = [&](std::size_t workers, std::uint64_t number) {
    DataLoader loader(both, {.batch_size = 7, .num_workers = workers, .seed = 9});
    loader.set_epoch(number);
    return test::rest_of_epoch(loader);
  };
  EXPECT_EQ(epoch(0, 1), epoch(3, 1));
  EXPECT_NE(epoch(0, 1), epoch(0, 2));
}

TEST(Scales, AreRefusedWhereTheyCannotBe) {
  const Dataset both = zip({{"a", ramps(2, 30)}, {"b", ramps(2, 3)}});
  const auto code = [&](const Scales& scales, const std::vector<std::string>& keys = {}) {
    return test::code_of([&] { both.random_crop({2}, {}, keys, scales).get(0); });
  };
  EXPECT_EQ(code({{"a", 0}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", 1}, {"a", 2}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", 1}}, {"a"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"c", 1}}), ErrorCode::kKeyNotFound);
  EXPECT_EQ(code({{"a", 20}, {"b", 1}}), ErrorCode::kShapeMismatch);
  EXPECT_THAT(test::error_of([&] {
                both.random_crop({2}, {}, {}, {{"a", 1}, {"b", 2}}).get(0);
              })->message(),
              HasSubstr("['b']"));
  EXPECT_TRUE(code({{"a", std::numeric_limits<std::int64_t>::max()}, {"b", 1}}));
  EXPECT_EQ(test::code_of([&] { both.random_crop({1}, {1}, {}, {{"a", 1}}).get(0); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] {
              both.random_crop({0}, {}, {}, {{"a", 1}}).random_crop({1}, {}, {}, {{"b", 4}}).get(0);
            }),
            ErrorCode::kShapeMismatch);
}

}  // namespace
}  // namespace penstock
