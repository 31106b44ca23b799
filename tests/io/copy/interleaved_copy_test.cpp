#include "io/copy/interleaved_copy.h"

#include <gtest/gtest.h>

#include "io/copy/scattered_rows.h"

namespace penstock::io {
namespace {

class SideBySideTest : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::size_t kLargest = kInterleavedUpTo;

  void SetUp() override {
    way_ = interleaved_copies()[GetParam()];
    if (way_.copy == nullptr) GTEST_SKIP() << "this processor has no such registers";
  }

  void expect_copied(std::size_t count, std::size_t row_bytes, std::size_t shift) const {
    test::expect_rows_copied(count, row_bytes, shift, [&](const auto& rows) { way_.copy(rows, row_bytes); });
  }

  InterleavedCopy way_;
};

TEST_P(SideBySideTest, CopiesAnyNumberOfRowsOfAnySize) {
  for (std::size_t count = 0; count <= 25; ++count) {
    for (const std::size_t over : {0, 1, 31, 63, 64, 65, 191, 700}) {
      expect_copied(count, way_.least_bytes + over, count % 5);
    }
  }
}

TEST_P(SideBySideTest, CopiesRowsAroundAPage) {
  for (const std::size_t bytes : {std::size_t{3072}, std::size_t{4095}, std::size_t{4096}, std::size_t{4097},
                                  std::size_t{8192}, std::size_t{12'345}, kLargest}) {
    for (const std::size_t count : {1, 3, 4, 7, 8, 9, 16, 23}) expect_copied(count, bytes, bytes % 3);
  }
}

std::string name_of(const testing::TestParamInfo<std::size_t>& info) { return info.param == 0 ? "Wide" : "Plain"; }

INSTANTIATE_TEST_SUITE_P(Registers, SideBySideTest, testing::Values(0, 1), name_of);

TEST(InterleavedCopy, IsThereForEveryProcessor) { EXPECT_NE(interleaved_copies().back().copy, nullptr); }

}  // namespace
}  // namespace penstock::io
