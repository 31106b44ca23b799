#include "data/loader/batch_queue.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace penstock::data {
namespace {

constexpr std::uint64_t kBudget = 100;
constexpr std::size_t kBatches = 3;

/// Has all batches started; the first is to be taken next.
void start(BatchQueue& queue) {
  for (std::size_t i = 0; i < kBatches; ++i) {
    queue.push({static_cast<std::int64_t>(i)});
    queue.start_next();
  }
}

TEST(BatchQueue, MemoryOfNoBatchCountsToo) {
  BatchQueue queue(nullptr, 0, {}, kBatches, kBudget);
  start(queue);
  queue.grant(0, 30);
  EXPECT_TRUE(queue.may_allocate(1, 30));
  EXPECT_TRUE(queue.may_allocate(1, 30, 40));
  EXPECT_FALSE(queue.may_allocate(1, 30, 41));
  EXPECT_FALSE(queue.may_allocate(1, 30, ~std::uint64_t{0}));
  EXPECT_TRUE(queue.may_allocate(0, 1000, 1000)) << "the one that is taken next never waits";
}

TEST(BatchQueue, ABatchThatFunctionsMadeLargerCountsAsItIs) {
  BatchQueue queue(nullptr, 0, {}, kBatches, kBudget);
  start(queue);
  queue.grant(0, 30);
  queue.finish(0, BatchQueue::Nothing::kTimedOut, 80);
  EXPECT_FALSE(queue.may_allocate(1, 30));
  EXPECT_TRUE(queue.may_allocate(1, 20));
  static_cast<void>(queue.take());
  queue.grant(1, 30);
  EXPECT_TRUE(queue.may_allocate(2, 70));
  queue.finish(1, BatchQueue::Nothing::kTimedOut, 10);  // its memory is still what it was granted
  EXPECT_FALSE(queue.may_allocate(2, 71));
}

}  // namespace
}  // namespace penstock::data
