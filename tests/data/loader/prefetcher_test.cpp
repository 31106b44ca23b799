// What a loader does when it is stopped, waits, or runs short: nothing here depends on how long anything takes.

#include "data/loader/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "data/support.h"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A gate that fetching passes through: open, or shut for some samples until it is opened or the loader stops.
class Gate {
 public:
  /// As a file operation that hangs: nothing but `open` ends it.
  void hang(std::int64_t index) {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return index < shut_from_; });
    ++passed_;
    changed_.notify_all();
  }
  void pass(std::int64_t index, const data::CallContext& call) {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    while (index >= shut_from_) {
      // A worker that waits for storage would notice a stop in the same way: between two file operations.
      changed_.wait_for(lock, 1ms);
      lock.unlock();
      call.check_cancelled();
      lock.lock();
    }
    ++passed_;
    changed_.notify_all();
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    shut_from_ = std::numeric_limits<std::int64_t>::max();
    changed_.notify_all();
  }
  void shut_from(std::int64_t index) {
    const std::scoped_lock lock(mutex_);
    shut_from_ = index;
  }
  void wait_arrived(std::int64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  std::int64_t arrived() {
    const std::scoped_lock lock(mutex_);
    return arrived_;
  }
  std::int64_t passed() {
    const std::scoped_lock lock(mutex_);
    return passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t shut_from_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t arrived_ = 0;
  std::int64_t passed_ = 0;
};

Dataset gated(Gate& gate, std::int64_t count = 64, std::int64_t width = 16) {
  return test::watched(rows(test::numbered_rows(count, width)),
                       [&gate](std::int64_t index, const data::CallContext& call) { gate.pass(index, call); });
}

/// Waits until `condition` holds, however long that takes.
template <class Condition>
void eventually(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

TEST(Prefetch, WaitsAreBounded) {
  Gate gate;
  gate.shut_from(2);
  DataLoader loader(gated(gate), {.num_workers = 2});
  loader.next();
  loader.next();
  for (const double seconds : {0.01, 0.0}) {
    const TimedBatch none = loader.next_for(seconds);
    EXPECT_FALSE(none.batch);
    EXPECT_TRUE(none.timed_out);
  }
  EXPECT_EQ(loader.position().batch, 2) << "a batch waited for is not lost";
  gate.open();
  const TimedBatch third = loader.next_for(1000);
  EXPECT_THAT(third.batch->indices, ElementsAre(2));
  EXPECT_FALSE(third.timed_out);
  EXPECT_EQ(test::code_of([&] { loader.next_for(-1); }), ErrorCode::kInvalidArgument);
}

/// The next batch of a loader whose timeout a busy machine may exceed.
Batch next_in_the_end(DataLoader& loader) {
  for (;;) {
    try {
      return loader.next().value();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
    }
  }
}

TEST(Prefetch, TheTimeoutOptionIsAnErrorThatCanBeTriedAgain) {
  Gate gate;
  gate.shut_from(1);
  DataLoader loader(gated(gate), {.num_workers = 1, .timeout = 0.01});
  EXPECT_THAT(next_in_the_end(loader).indices, ElementsAre(0));
  const auto error = test::error_of([&] { loader.next(); });
  EXPECT_EQ(error->code(), ErrorCode::kTimeout);
  EXPECT_THAT(error->message(), HasSubstr("DataLoader timed out after 0.01 seconds"));
  gate.open();
  EXPECT_THAT(next_in_the_end(loader).indices, ElementsAre(1));
}

/// How many worker threads this process has.
std::size_t worker_threads() {
  std::size_t out = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    out += test::read_file(task.path() / "comm") == "penstock-load\n" ? 1 : 0;
  }
  return out;
}

TEST(Prefetch, AsManyThreadsAreStartedAsThereAreBatches) {
  Gate gate;
  gate.shut_from(0);
  {
    DataLoader loader(gated(gate, 3), {.num_workers = 16});
    EXPECT_TRUE(loader.next_for(0).timed_out);  // which starts them
    gate.wait_arrived(3);
    EXPECT_EQ(worker_threads(), 3);
    EXPECT_EQ(loader.stats().workers, 16);
    gate.open();
    EXPECT_EQ(test::rest_of_epoch(loader).size(), 3);
    EXPECT_EQ(worker_threads(), 3);
  }
  eventually([] { return worker_threads() == 0; });
  const test::TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(4, {1 << 17}), ".npy");
  DataLoader large(files(folder.path().string()), {.batch_size = 4, .num_workers = 5});
  EXPECT_EQ(test::rest_of_epoch(large).size(), 1);
  EXPECT_EQ(worker_threads(), 5) << "they may help with the files of one batch";
}

TEST(Prefetch, NoMoreIsOutstandingThanAsked) {
  for (const std::size_t workers : {1, 3}) {
    Gate gate;
    DataLoader loader(gated(gate), {.num_workers = workers, .prefetch_factor = 2});
    loader.next();
    const auto most = static_cast<std::int64_t>(1 + 2 * workers);
    eventually([&] { return gate.passed() == most; });
    std::this_thread::sleep_for(20ms);  // time for what must not happen
    EXPECT_EQ(gate.arrived(), most);
    loader.next();
    eventually([&] { return gate.passed() == most + 1; });
  }
}

TEST(Prefetch, AStopWakesACallerThatWaits) {
  for (const std::size_t workers : {0, 1, 2, 8}) {
    Gate gate;
    gate.shut_from(1);
    DataLoader loader(gated(gate), {.num_workers = workers});
    loader.next();
    auto waiting = std::async(std::launch::async, [&] { return test::code_of([&] { loader.next(); }); });
    gate.wait_arrived(2);
    // The caller may not have come as far as waiting yet; a stop before that would not concern it.
    while (waiting.wait_for(5ms) != std::future_status::ready) loader.stop();
    EXPECT_EQ(waiting.get(), ErrorCode::kCancelled);
    EXPECT_EQ(loader.position().batch, 1);
    gate.open();
    EXPECT_THAT(loader.next()->indices, ElementsAre(1)) << "and goes on where it stood";
    EXPECT_THAT(loader.next()->indices, ElementsAre(2));
  }
}

TEST(Prefetch, StopsInEveryState) {
  for (const std::size_t workers : {0, 1, 2, 8}) {
    Gate gate;
    DataLoader loader(gated(gate), {.num_workers = workers});
    loader.stop();  // before anything
    loader.next();
    loader.stop();  // idle or preparing
    loader.stop();
    EXPECT_THAT(loader.next()->indices, ElementsAre(1));
    while (loader.next()) {
    }
    loader.stop();  // at the end of an epoch
    EXPECT_EQ(loader.epoch(), 1u);
    EXPECT_TRUE(loader.next());
  }
}

TEST(Prefetch, DestructionIsBoundedInEveryState) {
  for (const std::size_t workers : {1, 2, 8}) {
    {
      Gate gate;
      DataLoader unused(gated(gate), {.num_workers = workers});
    }
    {
      Gate gate;
      gate.shut_from(1);
      DataLoader blocked(gated(gate), {.num_workers = workers});
      blocked.next();
      gate.wait_arrived(2);
    }
    {
      Gate gate;
      // Each batch is all the budget: later workers wait for it.
      DataLoader waiting(gated(gate), {.num_workers = workers, .memory_budget = 64});
      waiting.next();
      gate.wait_arrived(2);
    }
    {
      Gate gate;
      DataLoader full(gated(gate), {.num_workers = workers});
      full.next();
      eventually([&] { return gate.passed() == static_cast<std::int64_t>(1 + 2 * workers); });
    }
    {
      Gate gate;
      DataLoader after_error(gated(gate), {.sampler = sampler::subset({99, 1, 2}), .num_workers = workers});
      EXPECT_EQ(test::code_of([&] { after_error.next(); }), ErrorCode::kIndexOutOfRange);
    }
  }
}

TEST(Prefetch, StopsFromAnotherThreadAtAnyMoment) {
  for (int round = 0; round < 30; ++round) {
    Gate gate;
    DataLoader loader(gated(gate, 2000),
                      {.batch_size = 3, .shuffle = true, .num_workers = 1 + static_cast<std::size_t>(round % 4)});
    std::atomic<bool> done{false};
    std::thread stopper([&] {
      while (!done) {
        loader.stop();
        static_cast<void>(loader.stats());
        std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
      }
    });
    std::vector<std::int64_t> seen;
    for (int i = 0; i < 60;) {
      try {
        const auto batch = loader.next();
        seen.insert(seen.end(), batch->indices.begin(), batch->indices.end());
        ++i;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kCancelled);
      }
    }
    done = true;
    stopper.join();
    const std::vector<std::int64_t> order = sampler::random(2000).order(0, 0).to_vector();
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), order.begin())) << "no batch is lost or comes twice";
  }
}

TEST(Prefetch, TheMemoryBudgetHolds) {
  // Batches of 4 x 64 bytes; what is allocated is counted through the memory that the pool hands out.
  for (const std::size_t workers : {1, 2, 8}) {
    for (const std::uint64_t batches : {1, 2, 5}) {
      Gate gate;
      const std::uint64_t budget = batches * 256;
      DataLoader loader(gated(gate, 400),
                        {.batch_size = 4, .num_workers = workers, .prefetch_factor = 8, .memory_budget = budget});
      const std::uint64_t window = std::min<std::uint64_t>(batches, workers * 8);
      std::vector<Batch> held;
      for (std::uint64_t i = 0; i < 20; ++i) {
        held.push_back(loader.next().value());
        // Held batches are never given back, so that every allocation shows: those taken, and those in the budget.
        ASSERT_LE(loader.stats().buffers_allocated, i + 1 + window) << workers << " workers, budget " << budget;
      }
      eventually([&] { return loader.stats().buffers_allocated == 20 + window; });
    }
  }
}

TEST(PrefetchFactor, IsNoMemoryThatFewBatchesWouldNotTake) {
  DataLoader loader(rows(test::numbered_rows(8, 3)), {.batch_size = 2, .prefetch_factor = 1 << 20});
  EXPECT_EQ(test::rest_of_epoch(loader).size(), 4U);
}

TEST(Prefetch, ABudgetSmallerThanABatchLetsOneThrough) {
  for (const std::size_t workers : {0, 1, 2, 8}) {
    Gate gate;
    DataLoader loader(gated(gate, 40), {.batch_size = 4, .num_workers = workers, .memory_budget = 0});
    EXPECT_EQ(test::rest_of_epoch(loader).size(), 10u);
  }
}

TEST(Prefetch, BatchesOfManySizesUnderATightBudget) {
  test::TemporaryFolder folder;
  std::vector<Tensor> tensors;
  for (std::int64_t i = 0; i < 60; ++i)
    tensors.push_back(test::numbered_tensor(Shape{1 + (i * 37) % 900}, DType::int32, 1));
  test::write_tensors(folder, tensors, ".npy");
  std::vector<std::string> expected;
  for (const std::size_t workers : {0, 1, 2, 8}) {
    DataLoader loader(files(folder.path().string()),
                      {.batch_size = 2, .num_workers = workers, .collate = collate::pad(), .memory_budget = 8000});
    const std::vector<std::string> got = test::rest_of_epoch(loader);
    if (expected.empty()) expected = got;
    EXPECT_EQ(got, expected);
  }
}

TEST(Prefetch, RestartsDropWhatWasPrepared) {
  Gate gate;
  DataLoader loader(gated(gate), {.num_workers = 4});
  for (int i = 0; i < 50; ++i) {
    loader.next();
    if (i % 3 == 0) loader.next();
    loader.restart();
    EXPECT_EQ(loader.position().batch, 0);
  }
  EXPECT_THAT(loader.next()->indices, ElementsAre(0));
}

TEST(AutoWorkers, AreMoreWhereSamplesAreWaitedFor) {
  constexpr std::int64_t kSlowSamples = 3000;
  const Dataset slow = test::watched(rows(Tensor::zeros(Shape{kSlowSamples, 1})),
                                     [](std::int64_t, const data::CallContext&) { std::this_thread::sleep_for(5ms); });
  DataLoader loader(slow, {.batch_size = 2, .shuffle = true, .seed = 3});
  const std::uint64_t before = loader.stats().workers;
  EXPECT_GE(before, 1U);
  DataLoader plain(rows(Tensor::zeros(Shape{kSlowSamples, 1})),
                   {.batch_size = 2, .shuffle = true, .num_workers = 0, .seed = 3});
  std::int64_t batches = 0;
  while (const auto batch = loader.next()) {
    ASSERT_EQ(batch->indices, plain.next()->indices) << "their number changes no batch";
    ++batches;
  }
  EXPECT_EQ(batches, kSlowSamples / 2);
  EXPECT_GT(loader.stats().workers, before);
}

TEST(Prefetcher, AReadThatHangsIsLeftBehindWithWhatItUses) {
  // Outlives the test where that fails; static, so that no leak is seen in it.
  static auto& gate = *new std::shared_ptr<Gate>(std::make_shared<Gate>());
  std::weak_ptr<int> used;
  {
    auto marker = std::make_shared<int>(1);
    used = marker;
    const Dataset dataset =
        test::watched(rows(test::numbered_rows(64, 16)),
                      [held = gate, marker](std::int64_t index, const data::CallContext&) { held->hang(index); });
    marker.reset();
    gate->shut_from(8);
    std::optional<DataLoader> loader(std::in_place, dataset,
                                     LoaderOptions{.batch_size = 4, .num_workers = 2, .timeout = 0.01});
    next_in_the_end(*loader);
    next_in_the_end(*loader);
    gate->wait_arrived(9);
    EXPECT_EQ(test::error_of([&] { loader->next(); })->code(), ErrorCode::kTimeout);
    loader.reset();  // which returns
  }
  EXPECT_FALSE(used.expired());
  gate->open();
  eventually([&] { return used.expired(); });
}

}  // namespace
}  // namespace penstock
