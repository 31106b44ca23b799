#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "io/copy/gather.h"
#include "support/files.h"

namespace penstock::test {

/// Lets `copy(rows)` copy `count` rows from odd places, backwards, to targets with gaps; looks at every row and every
/// gap.
template <class Copy>
void expect_rows_copied(std::size_t count, std::size_t row_bytes, std::size_t shift, const Copy& copy) {
  constexpr std::size_t kGap = 24;  // between targets
  constexpr std::byte kUntouched{0xEE};
  const auto untouched = [](std::byte b) { return b == kUntouched; };
  const std::vector<std::byte> from = numbered_bytes(shift + count * row_bytes);
  std::vector<std::byte> to(shift + count * (row_bytes + kGap), kUntouched);
  std::vector<io::GatherRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {to.data() + shift + i * (row_bytes + kGap), from.data() + shift + (count - 1 - i) * row_bytes};
  }
  copy(rows);
  EXPECT_TRUE(std::all_of(to.data(), to.data() + shift, untouched));
  for (const io::GatherRow& row : rows) {
    ASSERT_EQ(std::memcmp(row.to, row.from, row_bytes), 0) << count << " rows of " << row_bytes;
    ASSERT_TRUE(std::all_of(row.to + row_bytes, row.to + row_bytes + kGap, untouched))
        << count << " rows of " << row_bytes;
  }
}

}  // namespace penstock::test
