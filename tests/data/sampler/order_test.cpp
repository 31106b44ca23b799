#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "penstock/sampler.h"

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
    Order first(Indices{5, 6});
    copy = std::move(first);
    EXPECT_EQ(first.size(), 2);  // NOLINT(bugprone-use-after-move): that is what it is about
  }
  EXPECT_EQ(copy.to_vector(), (Indices{5, 6}));
}

TEST(Order, ARangeTakesNoMemory) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Order::range(kMost)[kMost - 1], kMost - 1);
}

}  // namespace
}  // namespace penstock
