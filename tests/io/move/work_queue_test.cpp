#include "io/move/work_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
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

}  // namespace
}  // namespace penstock::io
