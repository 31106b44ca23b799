#include "io/read/mapping_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/limited_addresses.h"

namespace penstock::io {
namespace {

/// How many mappings of `path` the process has.
std::size_t mappings_of(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  std::size_t found = 0;
  for (std::string line; std::getline(maps, line);) found += line.find(path) != std::string::npos ? 1 : 0;
  return found;
}

class MappingWindowTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 9'000'001;

  MappingWindowTest() { test::write_file(path_, bytes_); }
  bool shows(const std::byte* memory, std::size_t offset, std::size_t bytes) const {
    return memory != nullptr &&
           std::equal(memory, memory + bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "file";
  std::vector<std::byte> bytes_ = test::numbered_bytes(kBytes);
};

TEST_F(MappingWindowTest, ShowsRangesOfAnyLengthAnywhere) {
  const Source source = open_source(path_);
  MappingWindow window;
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t offset = i * 77'777 % kBytes;
    const std::size_t bytes = 1 + i * 912'345 % (kBytes - offset);
    ASSERT_TRUE(shows(window.map(*source, offset, bytes), offset, bytes)) << offset << " " << bytes;
  }
}

TEST_F(MappingWindowTest, LiesWhereHugePagesCanShowIt) {
  const Source source = open_source(path_);
  MappingWindow window;
  for (const std::size_t offset : {0U, 1U, 5000U, 3'000'000U, 8'999'998U}) {
    const std::byte* const memory = window.map(*source, offset, 2);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (2 << 20), offset % (2 << 20));
  }
}

TEST_F(MappingWindowTest, KeepsAFewAndLetsAllGo) {
  const Source source = open_source(path_);
  {
    MappingWindow window;
    for (int i = 0; i < 100; ++i) {
      ASSERT_NE(window.map(*source, 4096, 8 << 20), nullptr);
      ASSERT_LE(mappings_of(path_), 8U);
    }
    EXPECT_GE(mappings_of(path_), 2U);
  }
  EXPECT_EQ(mappings_of(path_), 0U);
}

TEST_F(MappingWindowTest, ARangeLargerThanTheWindow) {
  const std::size_t large = 100 << 20;
  std::filesystem::resize_file(path_, large);
  const Source source = open_source(path_);
  MappingWindow window;
  ASSERT_NE(window.map(*source, 0, 10), nullptr);
  const std::byte* const all = window.map(*source, 0, large);
  ASSERT_TRUE(shows(all, 0, kBytes));
  EXPECT_EQ(all[large - 1], std::byte{0});
  EXPECT_TRUE(shows(window.map(*source, 1, 10), 1, 10));
}

TEST_F(MappingWindowTest, SaysWhatUnmappingTook) {
  const Source source = open_source(path_);
  MappingWindow window;
  ASSERT_NE(window.map(*source, 0, 100), nullptr);
  ASSERT_NE(window.map(*source, 100, 200), nullptr);
  EXPECT_EQ(window.unmapped().bytes, 0U);
  window.release();
  EXPECT_EQ(window.unmapped().bytes, 300U);
  EXPECT_GT(window.unmapped().seconds, 0);
  const double seconds = window.unmapped().seconds;
  window.release();
  EXPECT_EQ(window.unmapped().seconds, seconds) << "it had nothing";
  EXPECT_TRUE(shows(window.map(*source, 0, 100), 0, 100));
}

TEST_F(MappingWindowTest, MemoryIsNotMapped) {
  MappingWindow window;
  const Source source = memory_source(Buffer::allocate(100));
  EXPECT_EQ(window.map(*source, 0, 100), nullptr);
}

TEST_F(MappingWindowTest, WithoutAddressSpaceThereIsNothing) {
  const Source source = open_source(path_);
  MappingWindow window;
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  {
    // Enough for a sanitizer's own needs.
    const test::LimitedAddresses limited(std::uint64_t{32} << 20);
    EXPECT_EQ(window.map(*source, 0, 100), nullptr);
  }
  EXPECT_TRUE(shows(window.map(*source, 0, 100), 0, 100)) << "once there is some again";
}

}  // namespace
}  // namespace penstock::io
