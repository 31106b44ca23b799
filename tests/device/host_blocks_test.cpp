#include "device/host_blocks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "support/limited_addresses.h"

namespace penstock::device {
namespace {

constexpr std::size_t kBlock = 3 * kHugePage;

bool is_mapped(const std::byte* address) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::byte*>(address), 1, &resident) == 0;
}

/// Asks for a block twice, so that the next one given back is kept.
void ask_again(const HostBlocks& blocks, std::size_t bytes) {
  for (int i = 0; i < 2; ++i) blocks.take(bytes);
}

TEST(HostBlocks, OneLoadKeepsNothing) {
  const HostBlocks blocks(64 * kHugePage);
  const std::byte* address = nullptr;
  {
    const Buffer block = blocks.take(kBlock);
    std::memset(block.data(), 1, block.size());
    address = block.data();
  }
  EXPECT_EQ(blocks.idle_bytes(), 0U);
  EXPECT_FALSE(is_mapped(address));
}

TEST(HostBlocks, WhatIsAskedForAgainIsKept) {
  const HostBlocks blocks(64 * kHugePage);
  ask_again(blocks, kBlock);
  EXPECT_EQ(blocks.idle_bytes(), kBlock);
  const Buffer first = blocks.take(kBlock);
  EXPECT_EQ(blocks.idle_bytes(), 0U);
  const Buffer second = blocks.take(kBlock);
  EXPECT_FALSE(first.shares_memory_with(second));
}

TEST(HostBlocks, AKeptBlockServesSmallerOnesAndTheRestStays) {
  const HostBlocks blocks(64 * kHugePage);
  ask_again(blocks, 8 * kHugePage);
  const Buffer a = blocks.take(2 * kHugePage + 1);
  EXPECT_EQ(blocks.idle_bytes(), 5 * kHugePage);
  const Buffer b = blocks.take(5 * kHugePage);
  EXPECT_EQ(blocks.idle_bytes(), 0U);
  EXPECT_EQ(b.data() - a.data(), static_cast<std::ptrdiff_t>(3 * kHugePage));
  std::memset(a.data(), 1, a.size());
  std::memset(b.data(), 2, b.size());
  EXPECT_EQ(a.data()[a.size() - 1], std::byte{1});
}

TEST(HostBlocks, NoMoreIsKeptThanAllowedAndTheLongestUnusedGoesFirst) {
  const HostBlocks blocks(2 * kBlock);
  std::vector<const std::byte*> addresses;
  for (int round = 0; round < 2; ++round) {
    std::vector<Buffer> held;
    for (int i = 0; i < 3; ++i) held.push_back(blocks.take(kBlock));
    addresses.clear();
    for (Buffer& block : held) {
      addresses.push_back(block.data());
      block = {};
    }
  }
  EXPECT_EQ(blocks.idle_bytes(), 2 * kBlock);
  const std::array again{blocks.take(kBlock), blocks.take(kBlock)};
  for (const Buffer& block : again) EXPECT_NE(block.data(), addresses[0]);
}

TEST(HostBlocks, ReleaseIdleUnmapsAndForgets) {
  const HostBlocks blocks(64 * kHugePage);
  ask_again(blocks, kBlock);
  const std::byte* address = nullptr;
  {
    const Buffer block = blocks.take(kBlock);
    address = block.data();
  }
  EXPECT_TRUE(is_mapped(address));
  blocks.release_idle();
  EXPECT_EQ(blocks.idle_bytes(), 0U);
  EXPECT_FALSE(is_mapped(address));
  blocks.take(kBlock);
  EXPECT_EQ(blocks.idle_bytes(), 0U);
}

TEST(HostBlocks, AlignedWritableAndDistinctAtEverySize) {
  const HostBlocks blocks(64 * kHugePage);
  std::mt19937 random(1);
  std::vector<Buffer> held(6);
  for (unsigned i = 0; i < 400; ++i) {
    Buffer& slot = held[random() % held.size()];
    slot = {};
    slot = blocks.take(kHugePage + random() % (4 * kHugePage));
    ASSERT_TRUE(slot);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot.data()) % kHugePage, 0U);
    slot.data()[0] = slot.data()[slot.size() - 1] = static_cast<std::byte>(i);
    std::vector<const Buffer*> order;
    for (const Buffer& block : held) {
      if (block) order.push_back(&block);
    }
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->data() < b->data(); });
    for (std::size_t k = 1; k < order.size(); ++k) {
      ASSERT_LE(order[k - 1]->data() + order[k - 1]->size(), order[k]->data());
    }
  }
}

TEST(HostBlocks, BuffersOutliveTheirBlocks) {
  std::optional<HostBlocks> blocks(std::in_place, 64 * kHugePage);
  ask_again(*blocks, kBlock);
  Buffer block = blocks->take(kBlock);
  blocks.reset();
  std::memset(block.data(), 1, block.size());
  const std::byte* const address = block.data();
  block = {};
  EXPECT_FALSE(is_mapped(address));
}

TEST(HostBlocksConcurrent, ThreadsShareBlocks) {
  const HostBlocks blocks(16 * kHugePage);
  const auto work = [&](unsigned thread) {
    for (int i = 0; i < 200; ++i) {
      const Buffer block = blocks.take(kHugePage + thread);
      std::memset(block.data(), static_cast<int>(thread), 4096);
      ASSERT_EQ(block.data()[4095], static_cast<std::byte>(thread));
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t);
  threads.clear();
  EXPECT_LE(blocks.idle_bytes(), 16 * kHugePage);
}

// Sanitizers' own allocators have locks that a child inherits held.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(HostBlocks, AChildMadeWhileTheLockIsHeldGoesOn) {
  const HostBlocks blocks(16 * kHugePage);
  std::atomic<bool> stop = false;
  std::jthread busy([&] {
    while (!stop) blocks.take(kHugePage);
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const Buffer block = blocks.take(kHugePage);
      block.data()[0] = std::byte{1};
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
}
#endif

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(HostBlocks, WhatIsKeptIsReleasedWhenTheAddressSpaceIsShort) {
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  const HostBlocks blocks(64 * kHugePage);
  ask_again(blocks, 16 * kHugePage);
  ASSERT_EQ(blocks.idle_bytes(), 16 * kHugePage);
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    const Buffer filler = blocks.take(kHugePage);  // splits what is kept
    limit.rlim_cur = 0;                            // nothing new can be mapped
    ::setrlimit(RLIMIT_AS, &limit);
    const bool refused = !blocks.take(32 * kHugePage);
    ::_exit(refused && blocks.idle_bytes() == 0 && filler ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace penstock::device
