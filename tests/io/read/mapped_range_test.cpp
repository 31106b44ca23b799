#include "io/read/mapped_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "io/copy/crc32.h"
#include "io/read/mapping_window.h"
#include "support/files.h"

namespace penstock::io {
namespace {

class MappedRangeTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 300'000;

  MappedRangeTest() { test::write_file(path_, bytes_); }

  bool arrived(std::uint64_t offset, std::size_t bytes) const {
    return std::equal(to_.begin(), to_.begin() + static_cast<std::ptrdiff_t>(bytes),
                      bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  MappingWindow window_;
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "file";
  std::vector<std::byte> bytes_ = test::numbered_bytes(kBytes);
  std::vector<std::byte> to_ = std::vector<std::byte>(kBytes);
};

TEST_F(MappedRangeTest, AnyPartWithAndWithoutItsChecksum) {
  const SourcePtr source = open_source(path_);
  for (const std::uint64_t begin : {0U, 1U, 4095U, 4096U, 200'001U}) {
    const Stores stores = begin % 2 == 0 ? Stores::kCached : Stores::kStreamed;
    const auto range = MappedRange::map(window_, *source, begin, kBytes - begin, stores);
    ASSERT_TRUE(range);
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 5000U, 90'000U}) {
      for (const std::uint64_t skip : {0U, 7U, 9000U}) {
        ASSERT_TRUE(range->copy(begin + skip, to_.data(), bytes));
        ASSERT_TRUE(arrived(begin + skip, bytes));
        std::uint32_t crc = 5;
        std::ranges::fill(to_, std::byte{0});
        ASSERT_TRUE(range->copy(begin + skip, to_.data(), bytes, &crc));
        ASSERT_TRUE(arrived(begin + skip, bytes));
        ASSERT_EQ(crc, crc32(5, std::span(bytes_).subspan(begin + skip, bytes)));
      }
    }
  }
}

TEST_F(MappedRangeTest, WhatIsGoneIsNotCopied) {
  const SourcePtr source = open_source(path_);
  const auto range = MappedRange::map(window_, *source, 0, kBytes, Stores::kStreamed);
  ASSERT_TRUE(range);
  std::filesystem::resize_file(path_, 100'000);
  std::uint32_t crc = 0;
  EXPECT_TRUE(range->copy(0, to_.data(), 90'000));
  EXPECT_TRUE(arrived(0, 90'000));
  EXPECT_FALSE(range->copy(0, to_.data(), kBytes));
  EXPECT_FALSE(range->copy(0, to_.data(), kBytes, &crc));
  EXPECT_FALSE(MappedRange::map(window_, *source, 0, 10, Stores::kStreamed)) << "shorter than when it was opened";
}

TEST_F(MappedRangeTest, MemoryIsNotMapped) {
  const SourcePtr source = memory_source(Buffer::allocate(100));
  EXPECT_FALSE(MappedRange::map(window_, *source, 0, 100, Stores::kStreamed));
}

}  // namespace
}  // namespace penstock::io
