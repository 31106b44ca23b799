#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "data/sampler/drawn.h"
#include "data/sampler/permutation.h"
#include "data/sampler/torch_random.h"
#include "penstock/sampler.h"
#include "support/errors.h"

namespace penstock {
namespace {

using Indices = std::vector<std::int64_t>;

TEST(Order, GivesItsIndicesWhateverHoldsThem) {
  const Indices wide = {3, 0, 9'000'000'000, -1};
  const std::vector<std::uint32_t> narrow = {7, 0, std::numeric_limits<std::uint32_t>::max()};
  const std::vector<std::pair<Order, Indices>> cases = {
      {Order(), {}},
      {Order::range(0), {}},
      {Order::range(4), {0, 1, 2, 3}},
      {Order(wide), wide},
      {Order(narrow), Indices(narrow.begin(), narrow.end())},
  };
  for (const auto& [order, expected] : cases) {
    ASSERT_EQ(order.size(), static_cast<std::int64_t>(expected.size()));
    EXPECT_EQ(order.empty(), expected.empty());
    EXPECT_EQ(order.to_vector(), expected);
    for (std::size_t begin = 0; begin < expected.size(); ++begin) {
      EXPECT_EQ(order[static_cast<std::int64_t>(begin)], expected[begin]);
      Indices rest(expected.size() - begin);
      order.copy(static_cast<std::int64_t>(begin), rest);
      EXPECT_THAT(rest,
                  ::testing::ElementsAreArray(expected.begin() + static_cast<std::ptrdiff_t>(begin), expected.end()));
    }
  }
}

TEST(Order, CopiesLiveOnBeyondTheFirst) {
  Order copy;
  {
    const Order first(Indices{5, 6});
    copy = first;
  }
  EXPECT_EQ(copy.to_vector(), (Indices{5, 6}));
}

TEST(Order, ARangeHasNoNegativeSize) {
  EXPECT_EQ(test::code_of([] { Order::range(-1); }), ErrorCode::kInvalidArgument);
}

TEST(Order, ARangeTakesNoMemory) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Order::range(kMost)[kMost - 1], kMost - 1);
}

TEST(Drawn, DrawsNoFurtherThanAskedAndEachOnce) {
  for (const std::int64_t bound : {std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1}) {
    const auto drawn = std::make_shared<std::int64_t>(0);
    const Order order = data::drawn(1'000, bound, [drawn](auto out) {
      using Index = typename decltype(out)::value_type;
      for (Index& index : out) index = static_cast<Index>(2 * (*drawn)++);
    });
    EXPECT_EQ(order.size(), 1'000);
    EXPECT_EQ(*drawn, 0);
    EXPECT_EQ(order[9], 18);
    EXPECT_EQ(*drawn, 10);
    EXPECT_EQ(order[3], 6);
    EXPECT_EQ(*drawn, 10);
    Indices piece(20);
    order.copy(5, piece);
    for (std::size_t i = 0; i < piece.size(); ++i) EXPECT_EQ(piece[i], static_cast<std::int64_t>(2 * (5 + i)));
    EXPECT_EQ(*drawn, 25);
    EXPECT_EQ(order.to_vector().back(), 1'998);
    EXPECT_EQ(*drawn, 1'000);
  }
}

/// Draws with replacement, of more indices than anyone waits for.
std::vector<Sampler> long_samplers(std::int64_t samples) {
  return {sampler::random(7, {.replacement = true, .num_samples = samples}),
          sampler::random(std::int64_t{1} << 40, {.replacement = true, .num_samples = samples}),
          sampler::weighted({1, 2, 3}, samples)};
}

TEST(Drawn, LongOrdersBeginAsShortOnesDo) {
  const std::vector<Sampler> brief = long_samplers(50);
  std::vector<Sampler> endless = long_samplers(std::int64_t{1} << 28);
  for (const Sampler& sampler : brief) {
    const Order order = endless.front().order(3, 4);
    endless.erase(endless.begin());  // an order outlives its sampler
    Indices first(50);
    order.copy(0, first);
    EXPECT_EQ(first, sampler.order(3, 4).to_vector());
  }
}

Indices randperm(std::int64_t size, std::uint64_t seed) {
  Indices out(static_cast<std::size_t>(size));
  data::Generator generator(seed);
  data::randperm(std::span(out), generator);
  return out;
}

TEST(Permutation, IsRandpermInWhateverPiecesItIsAskedFor) {
  std::mt19937 random(3);
  for (const std::int64_t size : {0, 1, 2, 3, 64, 65, 1023, 1024, 1025, 5000}) {
    const Indices whole = randperm(size, 9);
    const data::Permutation permutation(size, size, data::Generator(9));
    for (int round = 0; round < 20 && size > 0; ++round) {
      const auto begin = static_cast<std::size_t>(random() % whole.size());
      Indices piece(random() % (whole.size() - begin + 1));
      permutation.copy(static_cast<std::int64_t>(begin), piece);
      EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin))) << size;
    }
    EXPECT_EQ(Order(std::make_shared<data::Permutation>(size, size, data::Generator(9))).to_vector(), whole);
  }
}

TEST(Permutation, OfFewerBeginsAsTheWholeDoes) {
  Indices whole = randperm(3000, 1);
  whole.resize(1100);
  EXPECT_EQ(sampler::random(3000, {.num_samples = 1100}).order(1, 0).to_vector(), whole);
}

TEST(Permutation, ThreadsShareInTheMaking) {
  constexpr std::size_t kPiece = 100;
  const Indices whole = randperm(50'000, 2);
  const Order order(std::make_shared<data::Permutation>(50'000, 50'000, data::Generator(2)));
  Indices found(whole.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t at = t * kPiece; at < found.size(); at += 4 * kPiece) {
        order.copy(static_cast<std::int64_t>(at), std::span(found).subspan(at, kPiece));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, whole);
}

}  // namespace
}  // namespace penstock
