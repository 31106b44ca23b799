#include "core/round.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace penstock::core {
namespace {

TEST(Round, GoesToTheNextMultiple) {
  for (const std::uint64_t unit : {1U, 3U, 64U, 4096U}) {
    for (std::uint64_t value = 0; value < 3 * unit; ++value) {
      EXPECT_EQ(round_down(value, unit), value / unit * unit);
      EXPECT_EQ(round_up(value, unit), (value + unit - 1) / unit * unit);
    }
  }
}

TEST(Round, StaysWhereTheNextMultipleDoesNotFit) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(round_up(kMost, 4096), kMost);
  EXPECT_EQ(round_up(kMost - 4095, 4096), kMost - 4095);  // is a multiple
  EXPECT_EQ(round_up(kMost - 4094, 4096), kMost - 4094);
  EXPECT_EQ(round_down(kMost, 4096), kMost - 4095);
}

TEST(Round, PagesAreAPowerOfTwo) {
  EXPECT_GE(page_size(), 4096U);
  EXPECT_EQ(page_size() & (page_size() - 1), 0U);
}

}  // namespace
}  // namespace penstock::core
