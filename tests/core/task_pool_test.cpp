#include "core/task_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace penstock::core {
namespace {

TEST(ParallelFor, CallsEveryIndexOnce) {
  for (const std::size_t threads : {0U, 1U, 3U, 16U}) {
    for (const std::size_t count : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      parallel_for(count, threads, [&](std::size_t i) { ++calls[i]; });
      for (const auto& c : calls) EXPECT_EQ(c, 1);
    }
  }
}

TEST(ParallelFor, OneThreadIsTheCallersInOrder) {
  std::vector<std::size_t> order;
  parallel_for(5, 1, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(ParallelFor, TheFirstErrorStopsAndComesBack) {
  for (const std::size_t threads : {1U, 4U}) {
    std::atomic<int> calls{0};
    const auto body = [&](std::size_t i) {
      ++calls;
      if (i == 3) throw std::runtime_error("three");
    };
    EXPECT_THROW(parallel_for(1'000'000, threads, body), std::runtime_error);
    EXPECT_LT(calls, 1'000'000);
  }
}

TEST(UsableCpus, IsAtLeastOne) {
  EXPECT_GE(usable_cpus(), 1U);
  EXPECT_LE(usable_cpus(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace penstock::core
