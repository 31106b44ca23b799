#include "io/read/threads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/task_pool.h"
#include "device/host_memory.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using test::kMega;

constexpr std::uint64_t kGiga = std::uint64_t{1} << 30;

/// How many a read begins with.
std::size_t first(const Effort& effort, std::size_t asked) { return threads_for(effort, asked).first; }

/// As many as that, where the machine has them.
std::size_t on_this_machine(std::size_t threads) { return std::min(threads, core::usable_cpus()); }

TEST(ThreadsFor, FewBytesAreNotWorthASecondThread) {
  EXPECT_EQ(first({}, 0), 1U);
  EXPECT_EQ(first({.parts = 100, .bytes = 72}, 0), 1U);
  EXPECT_EQ(first({.parts = 100, .bytes = 3 * kMega}, 0), 1U);
  EXPECT_EQ(first({.parts = 100, .bytes = 4 * kMega}, 0), on_this_machine(2));
  EXPECT_EQ(first({.parts = 100, .bytes = kMega, .bytes_per_thread = Effort::kDecodedBytes}, 0), on_this_machine(4));
  EXPECT_EQ(first({.parts = 100, .bytes = kGiga}, 0), on_this_machine(16));
}

TEST(ThreadsFor, ManyCallsAreWorthThreads) {
  EXPECT_EQ(first({.parts = 511, .bytes = 511, .calls = 511}, 0), 1U);
  EXPECT_EQ(first({.parts = 512, .bytes = 512, .calls = 512}, 0), on_this_machine(2));
}

TEST(ThreadsFor, NoMoreThanThereAreParts) {
  EXPECT_EQ(first({.parts = 1, .bytes = kGiga}, 0), 1U);
  EXPECT_EQ(first({.parts = 3, .bytes = kGiga}, 100), 3U);
}

TEST(ThreadsFor, AskedForOnesAreStartedWhateverThereIsToDo) { EXPECT_EQ(first({.parts = 5, .bytes = 5}, 4), 4U); }

TEST(ThreadsFor, WhatWaitsHasManyWhateverTheProcessors) {
  const Threads disk = threads_for({.parts = 1000, .bytes = kGiga, .costs = kDiskCosts}, 0);
  EXPECT_TRUE(disk.waits);
  EXPECT_EQ(disk.first, 8U);
  EXPECT_EQ(disk.bound, device::host_memory().total_bytes >= 4 * kGiga ? "latency" : "memory");
  ASSERT_TRUE(disk.depth());
  EXPECT_EQ(disk.depth()->limit(), 8U);
}

TEST(ThreadsFor, NoMoreWaitThanThereAreParts) {
  const Threads few = threads_for({.parts = 3, .bytes = kGiga, .costs = kDiskCosts}, 0);
  EXPECT_EQ(few.first, 3U);
  EXPECT_EQ(few.most, 3U);
  EXPECT_EQ(few.bound, "plan");
  EXPECT_FALSE(few.depth()) << "there is no choice";
}

TEST(ThreadsFor, WhatRequestsHoldStaysWithinMemory) {
  for (const std::uint64_t holds : {kGiga / 128, kGiga / 20, kGiga, 100 * kGiga}) {
    const ReadCosts costs{.at_once = 16, .request_memory = holds};
    const Threads threads = threads_for({.parts = 10'000, .bytes = kGiga, .costs = costs}, 0);
    const std::uint64_t bound = std::min(kGiga, device::host_memory().total_bytes / 8);
    EXPECT_EQ(threads.bound, "memory");
    EXPECT_TRUE(threads.most == 1 || threads.most * holds <= bound) << holds;
    EXPECT_LE(threads.first, threads.most);
  }
}

TEST(ThreadsFor, EachNeedsASlotOfTheRing) {
  const Threads threads = threads_for({.parts = 10'000, .slots = 16, .costs = kDiskCosts}, 0);
  EXPECT_EQ(threads.first, 8U);
  EXPECT_EQ(threads.most, 16U);
  EXPECT_EQ(threads.bound, "memory");
}

TEST(ThreadsFor, WhatIsPacedElsewhereHasAllAtOnce) {
  const Threads threads = threads_for({.parts = 10'000, .costs = {.at_once = 64, .is_paced = true}}, 0);
  EXPECT_EQ(threads.first, 64U);
  EXPECT_EQ(threads.most, 64U);
  EXPECT_FALSE(threads.depth());
}

TEST(ThreadsFor, AskedForOnesAreTheDepth) {
  const Threads threads = threads_for({.parts = 100, .costs = kDiskCosts}, 20);
  EXPECT_EQ(threads.most, 20U);
  EXPECT_EQ(threads.bound, "threads");
  EXPECT_TRUE(threads.waits);
  EXPECT_FALSE(threads.depth());
}

}  // namespace
}  // namespace penstock::io
