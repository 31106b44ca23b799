#include "io/move/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io {
namespace {

using test::code_of;

constexpr std::uint64_t kParts = 1000;

TEST(WorkQueue, HandsOutEachPartOnce) {
  for (const std::size_t threads : {0, 1, 2, 7}) {
    std::mutex mutex;
    std::vector<std::uint64_t> seen;
    work_through(kParts, {.threads = threads}, [&](Worker& worker) {
      while (const std::optional<WorkItem> item = worker.next()) {
        EXPECT_FALSE(item->is_step);
        const std::scoped_lock lock(mutex);
        seen.push_back(item->index);
      }
    });
    std::ranges::sort(seen);
    std::vector<std::uint64_t> all(kParts);
    std::iota(all.begin(), all.end(), 0U);
    EXPECT_EQ(seen, all) << threads;
  }
}

TEST(WorkQueue, AddsUpWhatThreadsSpent) {
  const Spent spent = work_through(kParts, {.threads = 3}, [](Worker& worker) {
    while (worker.next())
      worker.spent.add({.read_bytes = 2, .mapped_bytes = 1, .read_seconds = 1, .decode_seconds = 3});
  });
  EXPECT_EQ(spent.read_bytes, 2 * kParts);
  EXPECT_EQ(spent.mapped_bytes, kParts);
  EXPECT_EQ(spent.read_seconds, double{kParts});
  EXPECT_EQ(spent.decode_seconds, 3.0 * kParts);
}

TEST(WorkQueue, AFailureEndsTheOthersInTheMiddleOfAnItem) {
  std::atomic<int> begun = 0;
  const auto work = [&](Worker& worker) {
    while (worker.next()) {
      if (begun++ == 1) throw Error(ErrorCode::kCorrupt, "the second");
      while (worker.goes_on()) continue;
    }
  };
  EXPECT_EQ(code_of([&] { work_through(kParts, {.threads = 2}, work); }), ErrorCode::kCorrupt);
  EXPECT_EQ(begun, 2);
}

TEST(WorkQueue, CancellingIsSeenBetweenItemsAndWithin) {
  for (const bool within : {false, true}) {
    std::stop_source stop;
    int begun = 0;
    const auto work = [&](Worker& worker) {
      while (worker.next()) {
        ++begun;
        stop.request_stop();
        if (within) worker.goes_on();
      }
    };
    EXPECT_EQ(code_of([&] { work_through(kParts, {.stop = stop.get_token()}, work); }), ErrorCode::kCancelled);
    EXPECT_EQ(begun, 1);
  }
}

TEST(WorkQueue, StepsFollowTheirPartsBeforeFurtherParts) {
  // Two parts fill a buffer each, and a step waits for each.
  const std::vector<Piece> pieces = {{.buffer = 0, .length = 10}, {.source = 1, .buffer = 1, .length = 10}};
  const Plan plan = make_plan(pieces);
  const std::vector<Step> steps = {{.buffers = {0}, .run = {}}, {.buffers = {1}, .run = {}}};
  Arrivals arrivals(plan, steps, 2);
  std::vector<std::pair<std::uint64_t, bool>> order;
  work_through(plan.ranges.size(), {.arrivals = &arrivals}, [&](Worker& worker) {
    while (const std::optional<WorkItem> item = worker.next()) order.emplace_back(item->index, item->is_step);
  });
  const std::vector<std::pair<std::uint64_t, bool>> wanted = {{0, false}, {0, true}, {1, false}, {1, true}};
  EXPECT_EQ(order, wanted);
}

/// Counts who works at the same time.
class AtWork {
 public:
  /// Begins an item; the first of all wait until so many have begun.
  void enter(std::size_t together) {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++now_);
    begun_ += 1;
    changed_.notify_all();
    changed_.wait(lock, [&] { return begun_ >= together; });
  }
  void leave() {
    const std::scoped_lock lock(mutex_);
    --now_;
  }
  std::size_t most() const { return most_; }
  std::size_t begun() const {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t now_ = 0;
  std::size_t most_ = 0;
  std::size_t begun_ = 0;
};

/// Windows of sixteen requests, however short.
Depth depth_of(std::size_t first, std::size_t most) {
  return Depth({.least = 1, .first = first, .most = most, .window = std::chrono::nanoseconds(0)});
}

TEST(WorkQueue, StartsMoreThreadsWhenTheDepthGrows) {
  Depth depth = depth_of(2, 8);
  AtWork at_work;
  std::atomic<std::uint64_t> sum = 0;
  const Spent spent = work_through(20'000, {.depth = &depth}, [&](Worker& worker) {
    EXPECT_TRUE(worker.has_depth());
    while (const std::optional<WorkItem> item = worker.next()) {
      at_work.enter(2);
      sum += item->index;
      worker.arrived(1);
      at_work.leave();
    }
  });
  EXPECT_EQ(sum, std::uint64_t{20'000} * 19'999 / 2) << "each part once";
  // The first that is measured is always followed by a step up.
  EXPECT_GE(spent.threads, 4U);
  EXPECT_LE(spent.threads, 8U);
  EXPECT_GE(at_work.most(), 2U);
  EXPECT_LE(at_work.most(), 8U);
}

TEST(WorkQueue, EndsWhereTheDepthShrinksAlsoWithSteps) {
  for (const bool with_steps : {false, true}) {
    std::vector<Piece> pieces(5000);
    std::vector<Step> steps;
    std::atomic<std::size_t> ran = 0;
    for (std::uint32_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = {.buffer = i, .offset = std::uint64_t{i} * 100'000, .length = 10};
      steps.push_back({.buffers = {i}, .run = [&ran] { ++ran; }});
    }
    const Plan plan = make_plan(pieces);
    Arrivals arrivals(plan, steps, pieces.size());
    // Nothing is gained above four, so that it goes down to one.
    Depth depth = depth_of(4, 4);
    AtWork at_work;
    const WorkOptions options{.depth = &depth, .arrivals = with_steps ? &arrivals : nullptr};
    std::atomic<std::size_t> parts = 0;
    work_through(plan.ranges.size(), options, [&](Worker& worker) {
      while (const std::optional<WorkItem> item = worker.next()) {
        if (item->is_step) {
          steps[static_cast<std::size_t>(item->index)].run();
          continue;
        }
        at_work.enter(4);
        ++parts;
        worker.arrived(1);
        at_work.leave();
      }
    });
    EXPECT_EQ(parts, plan.ranges.size());
    EXPECT_EQ(ran, with_steps ? steps.size() : 0);
    EXPECT_EQ(at_work.most(), 4U);
  }
}

TEST(WorkQueue, AFailureEndsThoseThatWaitForTheirTurn) {
  Depth depth = depth_of(16, 16);
  AtWork at_work;
  const auto work = [&](Worker& worker) {
    while (worker.next()) {
      at_work.enter(16);
      worker.arrived(1);
      at_work.leave();
      if (at_work.begun() > 2000) throw Error(ErrorCode::kCorrupt, "late");
    }
  };
  EXPECT_EQ(code_of([&] { work_through(1'000'000, {.depth = &depth}, work); }), ErrorCode::kCorrupt);
  EXPECT_LT(at_work.begun(), 2100U);
}

}  // namespace
}  // namespace penstock::io
