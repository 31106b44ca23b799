#include "core/thread_time.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace penstock::core {
namespace {

using Clock = std::chrono::steady_clock;

void spin(std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

TEST(ThreadTime, CountsRunningAndNotSleeping) {
  const double begin = thread_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(thread_seconds() - begin, 0.04);
  const double slept = thread_seconds();
  while (thread_seconds() - slept < 0.005) {
  }
  EXPECT_GE(process_seconds(), thread_seconds() - begin);
}

TEST(ThreadTime, ThreadsOfOneProcessorStallEachOther) {
  if (!thread_stalled_seconds()) GTEST_SKIP() << "the kernel does not count them";
  std::vector<double> stalled(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < stalled.size(); ++i) {
      threads.emplace_back([&, i] {
        cpu_set_t first;
        CPU_ZERO(&first);
        ::sched_getaffinity(0, sizeof(first), &first);
        int processor = 0;
        while (!CPU_ISSET(processor, &first)) ++processor;
        CPU_ZERO(&first);
        CPU_SET(processor, &first);
        ::sched_setaffinity(0, sizeof(first), &first);
        const double before = *thread_stalled_seconds();
        spin(std::chrono::milliseconds(300));
        stalled[i] = *thread_stalled_seconds() - before;
      });
    }
  }
  double all_stalled = 0;
  for (const double seconds : stalled) all_stalled += seconds;
  EXPECT_GT(all_stalled, 0.2) << "of about 0.6 s";
}

}  // namespace
}  // namespace penstock::core
