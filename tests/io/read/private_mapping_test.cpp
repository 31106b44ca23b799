#include "io/read/private_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "penstock/buffer.h"
#include "penstock/error.h"
#include "support/files.h"

namespace penstock::io {
namespace {

class PrivateMappingTest : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 3'000'001;
  static constexpr std::size_t kFrom = 5000;

  PrivateMappingTest() { test::write_file(path_, bytes_); }
  bool shows(const PrivateMapping& mapping) const {
    return std::equal(mapping.data(), mapping.data() + kBytes - kFrom, bytes_.begin() + kFrom);
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "file";
  std::vector<std::byte> bytes_ = test::numbered_bytes(kBytes);
};

TEST_F(PrivateMappingTest, IsWrittenToWithoutChangingTheFile) {
  const Source source = open_source(path_);
  const auto mapping = PrivateMapping::of(*source, kFrom, kBytes - kFrom);
  ASSERT_NE(mapping, nullptr);
  EXPECT_TRUE(shows(*mapping));
  mapping->data()[0] = std::byte{0xAA};
  const std::string kept = test::read_file(path_);
  EXPECT_EQ(std::memcmp(kept.data(), bytes_.data(), kBytes), 0);
}

TEST_F(PrivateMappingTest, DetachedItKeepsItsPlaceAndBytesWhateverBecomesOfTheFile) {
  const Source source = open_source(path_);
  const auto mapping = PrivateMapping::of(*source, kFrom, kBytes - kFrom);
  ASSERT_NE(mapping, nullptr);
  std::byte* const data = mapping->data();
  data[7] = bytes_[kFrom + 7] = std::byte{0xAA};
  mapping->detach();
  EXPECT_EQ(mapping->data(), data);
  std::filesystem::resize_file(path_, 0);
  EXPECT_TRUE(shows(*mapping));
  data[kBytes - kFrom - 1] = std::byte{1};  // is still writable
}

TEST_F(PrivateMappingTest, SaysOfAFileThatWasCutThatItWas) {
  const Source source = open_source(path_);
  const auto mapping = PrivateMapping::of(*source, kFrom, kBytes - kFrom);
  ASSERT_NE(mapping, nullptr);
  std::filesystem::resize_file(path_, 1'000'000);
  try {
    mapping->detach();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTruncated);
  }
  try {
    (void)PrivateMapping::of(*source, kFrom, kBytes - kFrom);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTruncated);
  }
}

TEST_F(PrivateMappingTest, IsNotThereForBytesWithoutAFile) {
  const Source source = memory_source(Buffer::allocate(10));
  EXPECT_EQ(PrivateMapping::of(*source, 0, 10), nullptr);
}

}  // namespace
}  // namespace penstock::io
