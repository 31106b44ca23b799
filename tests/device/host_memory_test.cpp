#include "device/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "penstock/buffer.h"
#include "penstock/error.h"
#include "support/errors.h"
#include "support/limited_addresses.h"

namespace penstock::device {
namespace {

TEST(HostMemory, IsNoMoreThanTheLargestRequest) {
  const MemoryInfo memory = host_memory();
  EXPECT_GT(memory.free_bytes, 0U);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
  EXPECT_LE(memory.total_bytes, largest_host_request());
}

TEST(AddressSpace, IsWhatTheLimitLeaves) {
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::uint64_t kMore = std::uint64_t{300} << 20;
  const test::LimitedAddresses limited(kMore);
  const auto space = address_space();
  ASSERT_TRUE(space);
  EXPECT_NEAR(static_cast<double>(space->free_bytes), static_cast<double>(kMore), 50e6);
  EXPECT_GT(space->total_bytes, space->free_bytes);
}

TEST(AddressSpace, RefusalsNameTheLimit) {
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  const test::LimitedAddresses limited(std::uint64_t{300} << 20);
  for (const std::size_t bytes : {std::size_t{500} << 20, std::size_t{400} << 20}) {
    const auto error = test::error_of([bytes] { Buffer::allocate(bytes); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error->message(), testing::HasSubstr("RLIMIT_AS"));
  }
}

}  // namespace
}  // namespace penstock::device
