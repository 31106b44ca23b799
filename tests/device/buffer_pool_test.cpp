#include "device/buffer_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "penstock/error.h"

namespace penstock::device {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(BufferPool, ASteadyStreamAllocatesOnce) {
  BufferPool pool({}, 64 * kMiB);
  for (int i = 0; i < 100; ++i) {
    const Buffer buffer = pool.take(3 * kMiB);
    EXPECT_EQ(buffer.size(), 3 * kMiB);
    std::memset(buffer.data(), i, buffer.size());
  }
  EXPECT_EQ(pool.allocations(), 1U);
}

TEST(BufferPool, SlightlyDifferentSizesShareBlocks) {
  BufferPool pool({}, 64 * kMiB);
  std::mt19937 random(1);
  pool.take(1'100'000);
  for (int i = 0; i < 100; ++i) {
    const std::size_t bytes = 900'000 + random() % 200'000;
    const Buffer buffer = pool.take(bytes);
    EXPECT_EQ(buffer.size(), bytes);
    std::memset(buffer.data(), 1, bytes);
  }
  EXPECT_EQ(pool.allocations(), 1U);
}

TEST(BufferPool, ASmallRequestDoesNotTakeALargeBlock) {
  BufferPool pool({}, 64 * kMiB);
  pool.take(8 * kMiB);
  pool.take(1000);
  EXPECT_EQ(pool.allocations(), 2U);
}

TEST(BufferPool, RoundingWastesLittle) {
  for (std::size_t bytes = 1; bytes < 64 * kMiB; bytes = bytes * 9 / 8 + 1) {
    BufferPool pool({}, 128 * kMiB);
    pool.take(bytes);
    EXPECT_GE(pool.idle_bytes(), bytes);
    EXPECT_LE(pool.idle_bytes(), bytes + bytes / 8 + 64) << bytes;
  }
}

TEST(BufferPool, BlocksInUseAreNotHandedOutAgain) {
  BufferPool pool({}, 64 * kMiB);
  const Buffer a = pool.take(1000);
  const Buffer b = pool.take(1000);
  EXPECT_NE(a.data(), b.data());
  EXPECT_FALSE(a.shares_memory_with(b));
  EXPECT_EQ(pool.allocations(), 2U);
}

TEST(BufferPool, APartKeepsItsBlock) {
  BufferPool pool({}, 64 * kMiB);
  const Buffer part = pool.take(1000).part(10, 10);
  EXPECT_EQ(pool.idle_bytes(), 0U);
  const Buffer other = pool.take(1000);
  EXPECT_NE(other.data(), part.data() - 10);
}

TEST(BufferPool, HoldsNoMoreThanItMay) {
  BufferPool pool({}, 4 * kMiB);
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 16; ++i) buffers.push_back(pool.take(kMiB));
  }
  EXPECT_LE(pool.idle_bytes(), 4 * kMiB);
  EXPECT_GE(pool.idle_bytes(), 3 * kMiB);
  pool.take(5 * kMiB);
  EXPECT_LE(pool.idle_bytes(), 4 * kMiB);
  {
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < 2 * BufferPool::kMaxIdleBlocks; ++i) buffers.push_back(pool.take(64));
  }
  EXPECT_LE(pool.idle_bytes(), 4 * kMiB + BufferPool::kMaxIdleBlocks * 64);
}

TEST(BufferPool, NewSizesPushOldOnesOut) {
  BufferPool pool({}, 4 * kMiB);
  pool.take(4 * kMiB);
  for (int i = 0; i < 10; ++i) pool.take(kMiB);
  EXPECT_EQ(pool.allocations(), 2U);
  EXPECT_LE(pool.idle_bytes(), 4 * kMiB);
}

TEST(BufferPool, WithoutRoomItStillServes) {
  BufferPool pool(Device(), 0);
  pool.take(1000);
  pool.take(1000);
  EXPECT_EQ(pool.allocations(), 2U);
  EXPECT_EQ(pool.idle_bytes(), 0U);
}

TEST(BufferPool, MemoryOfAnotherKindIsUsedAgainToo) {
  std::size_t left = 1;
  BufferPool pool(kMiB, [&left](std::size_t bytes) { return left-- > 0 ? Buffer::allocate(bytes) : Buffer(); });
  static_cast<void>(pool.take(1000));
  const Buffer held = pool.take(1000);
  EXPECT_TRUE(held);
  left = 0;
  EXPECT_FALSE(pool.take(1000));
  EXPECT_EQ(pool.allocations(), 1U);
}

TEST(BufferPool, EmptyBuffersAreLegal) {
  BufferPool pool({}, kMiB);
  EXPECT_TRUE(pool.take(0));
  EXPECT_EQ(pool.take(0).size(), 0U);
}

TEST(BufferPool, BuffersOutliveThePool) {
  std::optional<BufferPool> pool(std::in_place, Device(), kMiB);
  const Buffer buffer = pool->take(1000);
  pool.reset();
  std::memset(buffer.data(), 1, buffer.size());
}

TEST(BufferPool, ThreadsTakeAndReturn) {
  BufferPool pool({}, 64 * kMiB);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 500; ++i) {
        Buffer buffer = pool.take(10'000);
        std::memset(buffer.data(), t, buffer.size());
        // The last handle goes on another thread.
        if (i % 100 == 0) std::jthread([moved = std::move(buffer)]() mutable { moved = Buffer(); });
      }
    });
  }
  threads.clear();
  EXPECT_LE(pool.allocations(), 8U);
}

TEST(BufferPool, AForkedChildGivesNothingBack) {
  // The lock may be one that another thread of the parent has.
  BufferPool pool({}, 64 * kMiB);
  Buffer block = pool.take(kMiB);
  const pid_t child = ::fork();
  if (child == 0) {
    block = Buffer();
    ::_exit(pool.idle_bytes() == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  block = Buffer();
  EXPECT_GE(pool.idle_bytes(), kMiB);
}

TEST(BufferPool, AbsurdSizesAreRefused) {
  BufferPool pool({}, kMiB);
  EXPECT_THROW(pool.take(SIZE_MAX), Error);
  EXPECT_THROW(pool.take(SIZE_MAX / 2 + 1), Error);
  EXPECT_EQ(pool.allocations(), 0U);
}

}  // namespace
}  // namespace penstock::device
