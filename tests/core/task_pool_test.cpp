#include "core/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <set>
#include <stdexcept>

#include "penstock/error.h"

namespace penstock::core {
namespace {

TEST(TaskPool, RunsEveryTask) {
  std::atomic<int> done{0};
  std::promise<void> all;
  TaskPool pool(4, "test");
  EXPECT_EQ(pool.size(), 4U);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(pool.submit([&](std::stop_token) {
      if (++done == 1000) all.set_value();
    }));
  }
  all.get_future().wait();
  EXPECT_EQ(done, 1000);
}

TEST(TaskPool, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  std::promise<void> all;
  TaskPool pool(1, "a name longer than the system keeps");
  for (int i = 0; i < 100; ++i) {
    pool.submit([&order, &all, i](std::stop_token) {
      order.push_back(i);
      if (i == 99) all.set_value();
    });
  }
  all.get_future().wait();
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(TaskPool, StopDropsWhatIsQueuedAndReachesWhatRuns) {
  std::atomic<int> ran{0};
  std::promise<void> started;
  TaskPool pool(1, "test");
  pool.submit([&](std::stop_token token) {
    started.set_value();
    while (!token.stop_requested()) std::this_thread::yield();
    ++ran;
  });
  auto held = std::make_shared<int>(0);
  for (int i = 0; i < 100; ++i) pool.submit([&ran, held](std::stop_token) { ++ran; });
  started.get_future().wait();
  pool.stop();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(held.use_count(), 1) << "dropped tasks are destroyed";
  EXPECT_FALSE(pool.submit([&](std::stop_token) { ++ran; }));
  pool.stop();
  EXPECT_EQ(ran, 1);
}

TEST(TaskPool, ManyThreadsMayStopAtOnce) {
  TaskPool pool(3, "test");
  std::vector<std::jthread> stoppers;
  for (int i = 0; i < 8; ++i) stoppers.emplace_back([&] { pool.stop(); });
  stoppers.clear();
  EXPECT_FALSE(pool.submit([](std::stop_token) {}));
}

TEST(TaskPool, ATaskMayStopItsPool) {
  std::promise<void> stopped;
  TaskPool pool(2, "test");
  pool.submit([&](std::stop_token) {
    pool.stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
  EXPECT_FALSE(pool.submit([](std::stop_token) {}));
}

TEST(TaskPool, TasksMaySubmitTasks) {
  std::promise<void> inner;
  TaskPool pool(1, "test");
  pool.submit([&](std::stop_token) { pool.submit([&](std::stop_token) { inner.set_value(); }); });
  inner.get_future().wait();
}

TEST(TaskPool, NeedsAThread) { EXPECT_THROW(TaskPool(0, "none"), Error); }

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
