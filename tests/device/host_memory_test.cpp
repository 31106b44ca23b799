#include "device/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "penstock/buffer.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::device {
namespace {

/// This process may have so many more bytes of addresses, as long as it lives.
class LimitedAddresses {
 public:
  explicit LimitedAddresses(std::uint64_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    set(kPlenty);  // so that address_space() says what is in use
    set(kPlenty - address_space()->free_bytes + more);
  }
  ~LimitedAddresses() { ::setrlimit(RLIMIT_AS, &before_); }
  LimitedAddresses(const LimitedAddresses&) = delete;
  LimitedAddresses& operator=(const LimitedAddresses&) = delete;

 private:
  static constexpr std::uint64_t kPlenty = std::uint64_t{1} << 50;

  void set(std::uint64_t bytes) const {
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_AS, &limit);
  }

  rlimit before_{};
};

TEST(HostMemory, IsNoMoreThanTheLargestRequest) {
  const MemoryInfo memory = host_memory();
  EXPECT_GT(memory.free_bytes, 0U);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
  EXPECT_LE(memory.total_bytes, largest_host_request());
}

TEST(AddressSpace, IsWhatTheLimitLeaves) {
  if (address_space()) GTEST_SKIP() << "limited already";
  constexpr std::uint64_t kMore = std::uint64_t{300} << 20;
  const LimitedAddresses limited(kMore);
  const auto space = address_space();
  ASSERT_TRUE(space);
  EXPECT_NEAR(static_cast<double>(space->free_bytes), static_cast<double>(kMore), 50e6);
  EXPECT_GT(space->total_bytes, space->free_bytes);
}

TEST(AddressSpace, RefusalsNameTheLimit) {
  if (address_space()) GTEST_SKIP() << "limited already";
  const LimitedAddresses limited(std::uint64_t{300} << 20);
  for (const std::size_t bytes : {std::size_t{500} << 20, std::size_t{400} << 20}) {
    const auto error = test::error_of([bytes] { Buffer::allocate(bytes); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error->message(), testing::HasSubstr("RLIMIT_AS"));
  }
}

}  // namespace
}  // namespace penstock::device
