#include "io/move/threads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/task_pool.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using test::kMega;

constexpr std::uint64_t kGiga = 1 << 30;

/// As many as that, where the machine has them.
std::size_t on_this_machine(std::size_t threads) { return std::min(threads, core::usable_cpus()); }

TEST(ThreadsFor, FewBytesAreNotWorthASecondThread) {
  EXPECT_EQ(threads_for({}, 0), 1U);
  EXPECT_EQ(threads_for({.parts = 100, .bytes = 72}, 0), 1U);
  EXPECT_EQ(threads_for({.parts = 100, .bytes = 3 * kMega}, 0), 1U);
  EXPECT_EQ(threads_for({.parts = 100, .bytes = 4 * kMega}, 0), on_this_machine(2));
  EXPECT_EQ(threads_for({.parts = 100, .bytes = kMega, .bytes_per_thread = Effort::kDecodedBytes}, 0),
            on_this_machine(4));
  EXPECT_EQ(threads_for({.parts = 100, .bytes = kGiga}, 0), on_this_machine(16));
}

TEST(ThreadsFor, ManyCallsAreWorthThreads) {
  EXPECT_EQ(threads_for({.parts = 511, .bytes = 511, .calls = 511}, 0), 1U);
  EXPECT_EQ(threads_for({.parts = 512, .bytes = 512, .calls = 512}, 0), on_this_machine(2));
}

TEST(ThreadsFor, NoMoreThanThereAreParts) {
  EXPECT_EQ(threads_for({.parts = 1, .bytes = kGiga}, 0), 1U);
  EXPECT_EQ(threads_for({.parts = 3, .bytes = kGiga}, 100), 3U);
  EXPECT_EQ(threads_for({.parts = 3, .bytes = kGiga, .waits_for_disk = true}, 0), 3U);
}

TEST(ThreadsFor, AskedForOnesAreStartedWhateverThereIsToDo) { EXPECT_EQ(threads_for({.parts = 5, .bytes = 5}, 4), 4U); }

TEST(ThreadsFor, TheDiskHasMoreThanTheProcessors) {
  EXPECT_EQ(threads_for({.parts = 100, .bytes = 100, .waits_for_disk = true}, 0), 8U);
}

}  // namespace
}  // namespace penstock::io
