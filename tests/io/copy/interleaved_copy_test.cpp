#include "io/copy/interleaved_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "io/copy/gather.h"
#include "support/files.h"

namespace penstock::io {
namespace {

constexpr std::size_t kGap = 24;  // between targets
constexpr std::byte kUntouched{0xEE};

/// Copies `count` rows from odd places, backwards, to targets with gaps; every row and every gap is looked at.
void expect_copied(const InterleavedCopy& way, std::size_t count, std::size_t row_bytes, std::size_t shift) {
  const std::vector<std::byte> from = test::numbered_bytes(shift + count * row_bytes);
  std::vector<std::byte> to(shift + count * (row_bytes + kGap), kUntouched);
  std::vector<GatherRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {to.data() + shift + i * (row_bytes + kGap), from.data() + shift + (count - 1 - i) * row_bytes};
  }
  way.copy(rows, row_bytes);
  EXPECT_TRUE(std::all_of(to.data(), to.data() + shift, [](std::byte b) { return b == kUntouched; }));
  for (const GatherRow& row : rows) {
    ASSERT_EQ(std::memcmp(row.to, row.from, row_bytes), 0) << count << " rows of " << row_bytes;
    ASSERT_TRUE(std::all_of(row.to + row_bytes, row.to + row_bytes + kGap, [](std::byte b) { return b == kUntouched; }))
        << count << " rows of " << row_bytes;
  }
}

class SideBySideTest : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::size_t kLargest = kInterleavedUpTo;

  void SetUp() override {
    way_ = interleaved_copies()[GetParam()];
    if (way_.copy == nullptr) GTEST_SKIP() << "this processor has no such registers";
  }

  InterleavedCopy way_;
};

TEST_P(SideBySideTest, CopiesAnyNumberOfRowsOfAnySize) {
  for (std::size_t count = 0; count <= 25; ++count) {
    for (const std::size_t over : {0, 1, 31, 63, 64, 65, 191, 700}) {
      expect_copied(way_, count, way_.least_bytes + over, count % 5);
    }
  }
}

TEST_P(SideBySideTest, CopiesRowsAroundAPage) {
  for (const std::size_t bytes : {std::size_t{3072}, std::size_t{4095}, std::size_t{4096}, std::size_t{4097},
                                  std::size_t{8192}, std::size_t{12'345}, kLargest}) {
    for (const std::size_t count : {1, 3, 4, 7, 8, 9, 16, 23}) expect_copied(way_, count, bytes, bytes % 3);
  }
}

std::string name_of(const testing::TestParamInfo<std::size_t>& info) { return info.param == 0 ? "Wide" : "Plain"; }

INSTANTIATE_TEST_SUITE_P(Registers, SideBySideTest, testing::Values(0, 1), name_of);

TEST(InterleavedCopy, IsThereForEveryProcessor) { EXPECT_NE(interleaved_copies().back().copy, nullptr); }

}  // namespace
}  // namespace penstock::io
