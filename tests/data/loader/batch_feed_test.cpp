#include "data/loader/batch_feed.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "data/support.h"
#include "support/errors.h"

namespace penstock::data {
namespace {

constexpr double kLong = 60;

Dataset numbers(std::int64_t count) {
  const Tensor values = Tensor::empty(Shape{count}, DType::int64);
  for (std::int64_t i = 0; i < count; ++i) values.values<std::int64_t>()[static_cast<std::size_t>(i)] = i * 10;
  return rows(values);
}

std::vector<std::int64_t> values_of(const Batch& batch) {
  const auto values = batch.tensor().values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(BatchFeed, GivesWhatIsPushedInOrderWhateverTheWorkers) {
  for (const std::size_t workers : {0U, 1U, 3U}) {
    BatchFeed feed(numbers(100), {.num_workers = workers});
    std::int64_t pushed = 0;
    for (std::int64_t taken = 0; taken < 40; ++taken) {
      for (; pushed < 40 && pushed - taken < static_cast<std::int64_t>(feed.window()); ++pushed) {
        feed.push({pushed, 99 - pushed});
      }
      const auto batch = feed.next_for(kLong);
      ASSERT_TRUE(batch);
      EXPECT_EQ(values_of(*batch), (std::vector<std::int64_t>{taken * 10, (99 - taken) * 10}));
      EXPECT_EQ(batch->indices, (std::vector<std::int64_t>{taken, 99 - taken}));
    }
  }
}

TEST(BatchFeed, SaysWhetherABatchIsThere) {
  BatchFeed feed(numbers(4), {.num_workers = 1, .prefetch_factor = 2});
  EXPECT_FALSE(feed.ready());
  feed.push({0});
  while (!feed.ready()) std::this_thread::yield();
  EXPECT_TRUE(feed.next_for(0));
  EXPECT_FALSE(feed.ready());
}

TEST(BatchFeed, AnErrorBelongsToOneBatch) {
  BatchFeed feed(numbers(4), {.num_workers = 2});
  feed.push({0});
  feed.push({4});
  feed.push({3});
  EXPECT_EQ(values_of(feed.next_for(kLong).value()), std::vector<std::int64_t>{0});
  EXPECT_EQ(test::code_of([&] { feed.next_for(kLong); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(values_of(feed.next_for(kLong).value()), std::vector<std::int64_t>{30});
}

TEST(BatchFeed, RefusesMoreThanItsWindowAndTakingFromNothing) {
  BatchFeed feed(numbers(4), {.num_workers = 1, .prefetch_factor = 2});
  EXPECT_EQ(test::code_of([&] { feed.next_for(0); }), ErrorCode::kInvalidArgument);
  feed.push({0});
  feed.push({1});
  EXPECT_EQ(test::code_of([&] { feed.push({2}); }), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(feed.next_for(kLong));
  feed.push({2});
}

TEST(BatchFeed, BeginsAnewAfterCancel) {
  BatchFeed feed(numbers(8), {.num_workers = 2});
  feed.push({1});
  feed.cancel();
  EXPECT_EQ(test::code_of([&] { feed.next_for(kLong); }), ErrorCode::kCancelled);
  feed.push({7});
  EXPECT_EQ(values_of(feed.next_for(kLong).value()), std::vector<std::int64_t>{70});
}

}  // namespace
}  // namespace penstock::data
