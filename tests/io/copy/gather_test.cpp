#include "io/copy/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/files.h"

namespace penstock::io {
namespace {

constexpr std::size_t kGap = 24;  // between targets
constexpr std::byte kUntouched{0xEE};

/// Copies rows from odd places, backwards, to targets with gaps; every row and every gap is looked at.
void expect_gathered(std::size_t count, std::size_t row_bytes) {
  const std::size_t shift = row_bytes % 5;
  const std::vector<std::byte> from = test::numbered_bytes(shift + count * row_bytes);
  std::vector<std::byte> to(shift + count * (row_bytes + kGap), kUntouched);
  std::vector<GatherRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {to.data() + shift + i * (row_bytes + kGap), from.data() + shift + (count - 1 - i) * row_bytes};
  }
  gather(rows, row_bytes);
  EXPECT_TRUE(std::all_of(to.data(), to.data() + shift, [](std::byte b) { return b == kUntouched; }));
  for (const GatherRow& row : rows) {
    ASSERT_EQ(std::memcmp(row.to, row.from, row_bytes), 0) << count << " rows of " << row_bytes;
    ASSERT_TRUE(std::all_of(row.to + row_bytes, row.to + row_bytes + kGap, [](std::byte b) { return b == kUntouched; }))
        << count << " rows of " << row_bytes;
  }
}

TEST(Gather, CopiesRowsOfEverySizeAndNothingBeside) {
  for (std::size_t row_bytes = 1; row_bytes <= 700; ++row_bytes) {
    for (const std::size_t count : {1, 2, 9, 20}) expect_gathered(count, row_bytes);
  }
  for (const std::size_t row_bytes : {1023, 1025, 4096, 16383, 16384, 16385, 40000}) expect_gathered(9, row_bytes);
}

}  // namespace
}  // namespace penstock::io
