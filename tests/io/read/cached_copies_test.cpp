#include "io/read/cached_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "io/copy/crc32.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

class CachedCopiesTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 300'000;

  CachedCopiesTest() { test::write_file(path_, bytes_); }

  bool arrived(std::uint64_t offset, std::size_t bytes) const {
    return std::equal(to_.begin(), to_.begin() + static_cast<std::ptrdiff_t>(bytes),
                      bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  CachedCopies copies_{false};
  CachedCopies::Thread thread_;
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "file";
  std::vector<std::byte> bytes_ = test::numbered_bytes(kBytes);
  std::vector<std::byte> to_ = std::vector<std::byte>(kBytes);
};

TEST_F(CachedCopiesTest, AnyPartWithAndWithoutItsChecksum) {
  const Source source = open_source(path_);
  for (const std::uint64_t begin : {0U, 1U, 4095U, 4096U, 200'001U}) {
    const Stores stores = begin % 2 == 0 ? Stores::kCached : Stores::kStreamed;
    CachedCopies::RangeCopy range(copies_, thread_, *source, kBytes - begin);
    range.map(begin, stores);
    ASSERT_TRUE(range.is_mapped());
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 5000U, 90'000U}) {
      for (const std::uint64_t skip : {0U, 7U, 9000U}) {
        ASSERT_TRUE(range.copy(begin + skip, to_.data(), bytes));
        ASSERT_TRUE(arrived(begin + skip, bytes));
        std::uint32_t crc = 5;
        std::ranges::fill(to_, std::byte{0});
        ASSERT_TRUE(range.copy(begin + skip, to_.data(), bytes, &crc));
        ASSERT_TRUE(arrived(begin + skip, bytes));
        ASSERT_EQ(crc, crc32(5, std::span(bytes_).subspan(begin + skip, bytes)));
      }
    }
  }
}

TEST_F(CachedCopiesTest, WhatIsGoneIsNotCopied) {
  const Source source = open_source(path_);
  CachedCopies::RangeCopy range(copies_, thread_, *source, kBytes);
  range.map(0, Stores::kStreamed);
  ASSERT_TRUE(range.is_mapped());
  std::filesystem::resize_file(path_, 100'000);
  std::uint32_t crc = 0;
  EXPECT_TRUE(range.copy(0, to_.data(), 90'000));
  EXPECT_TRUE(arrived(0, 90'000));
  EXPECT_FALSE(range.copy(0, to_.data(), kBytes));
  EXPECT_FALSE(range.copy(0, to_.data(), kBytes, &crc));
  EXPECT_EQ(test::code_of([&] { range.finish(); }), ErrorCode::kTruncated);
  CachedCopies::RangeCopy next(copies_, thread_, *source, 10);
  next.map(0, Stores::kStreamed);
  EXPECT_FALSE(next.is_mapped()) << "shorter than when it was opened";
}

TEST_F(CachedCopiesTest, MemoryIsNotMapped) {
  const Source source = memory_source(Buffer::allocate(100));
  CachedCopies::RangeCopy range(copies_, thread_, *source, 100);
  range.map(0, Stores::kStreamed);
  EXPECT_FALSE(range.is_mapped());
  range.finish();
}

TEST_F(CachedCopiesTest, GoesBothWaysByTurnsAtFirst) {
  const Source source = open_source(path_);
  int mapped = 0;
  for (int i = 0; i < 6; ++i) {
    CachedCopies::RangeCopy range(copies_, thread_, *source, kBytes);
    if (copies_.map_next()) range.map(0, Stores::kStreamed);
    if (range.is_mapped()) {
      ++mapped;
      EXPECT_TRUE(range.copy(0, to_.data(), kBytes));
    } else {
      source.read(0, to_);
    }
    range.finish();
  }
  EXPECT_EQ(mapped, 3);
}

}  // namespace
}  // namespace penstock::io
