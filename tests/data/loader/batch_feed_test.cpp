#include "data/loader/batch_feed.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <thread>

#include "data/support.h"
#include "support/errors.h"

namespace {

std::atomic<std::uint64_t> questions_about_pages = 0;

}  // namespace

/// In the place of the C library's, to count the calls.
extern "C" int mincore(void* begin, std::size_t size, unsigned char* there) noexcept {
  ++questions_about_pages;
  return static_cast<int>(::syscall(SYS_mincore, begin, size, there));
}

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

TEST(BatchFeed, MakesABatchAtOnceWhereRowsLieInMemory) {
  BatchFeed feed(numbers(100), {.num_workers = 0});
  for (std::int64_t i = 0; i < 40; ++i) {
    const auto batch = feed.at_once({i, 99 - i});
    ASSERT_TRUE(batch);
    EXPECT_EQ(values_of(*batch), (std::vector<std::int64_t>{i * 10, (99 - i) * 10}));
    if (i % 8 != 0) continue;
    feed.push({i});
    EXPECT_TRUE(feed.ready());
    EXPECT_FALSE(feed.at_once({1}));  // another one comes first
    EXPECT_EQ(values_of(feed.next_for(0).value()), std::vector<std::int64_t>{i * 10});
  }
  EXPECT_EQ(feed.stats().batches, 45U);
  EXPECT_FALSE(feed.at_once({}));
  EXPECT_FALSE(feed.at_once({100}));
  EXPECT_FALSE(feed.at_once({7, 100}));
  EXPECT_EQ(values_of(feed.at_once({7}).value()), std::vector<std::int64_t>{70});
}

TEST(BatchFeed, LeavesToAThreadWhatMayTakeLong) {
  const test::TemporaryFolder folder;
  save(Tensor::of<float>({1, 2}), folder / "a.npy");
  EXPECT_FALSE(BatchFeed(files({folder / "a.npy"}), {.num_workers = 0}).at_once({0}));
  EXPECT_FALSE(BatchFeed(rows(std::string(folder / "a.npy")), {.num_workers = 0}).at_once({0}));  // which is mapped
  const Dataset called = numbers(4).map([](const Value& sample) { return sample; });
  EXPECT_FALSE(BatchFeed(called, {.num_workers = 0}).at_once({0}));
  EXPECT_FALSE(BatchFeed(numbers(4), {.num_workers = 1}).at_once({0}));
  Tensor two = Tensor::empty(Shape{2, std::int64_t{9} << 20}, DType::uint8);
  std::memset(two.data(), 1, two.nbytes());  // so that all of its pages are there
  BatchFeed large(rows(two), {.num_workers = 0});
  EXPECT_TRUE(large.at_once({0}));
  EXPECT_FALSE(large.at_once({0, 1}));
  large.push({0, 1});
  EXPECT_EQ(large.next_for(kLong).value().size(), 2);
}

TEST(BatchFeed, AsksOfRowsOfOnePageOnceWhetherItIsThere) {
  constexpr std::int64_t kRows = 8192;  // of 8 bytes: 16 pages, or 17
  BatchFeed feed(numbers(kRows), {.num_workers = 0});
  const std::uint64_t before = questions_about_pages;
  for (std::int64_t i = 0; i < kRows; ++i) ASSERT_TRUE(feed.at_once({i}));
  const std::uint64_t asked = questions_about_pages - before;
  EXPECT_GE(asked, 1U) << "calls are not counted";
  EXPECT_LT(asked, kRows / 8U);  // also where the epoch takes seconds, because an answer is not believed for long
}

TEST(BatchFeed, DatasetsOverRowsInMemoryLieThereToo) {
  const Dataset all = numbers(8);
  for (const Dataset& dataset : {subset(all, {3, 1}), concat({all, all}), zip(all, all), all.cast(DType::float32)}) {
    EXPECT_TRUE(BatchFeed(dataset, {.num_workers = 0}).at_once({0}));
  }
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
