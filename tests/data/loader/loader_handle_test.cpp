// A DataLoader as an object: what a forked child may do with it, what a range takes it for, whose order it believes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <latch>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>

#include "data/support.h"
#include "penstock/loader.h"
#include "support/emulator.h"
#include "support/errors.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

static_assert(std::input_iterator<DataLoader::Iterator>);
static_assert(std::ranges::input_range<DataLoader>);

DataLoader some_loader(std::size_t workers) {
  return {rows(test::numbered_rows(64, 3)), {.batch_size = 2, .num_workers = workers}};
}

/// The exit status of `body` in a child process; 255 where it did not end within ten seconds.
template <std::invocable F>
int in_child(F body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

TEST(LoaderHandle, RefusesToGoOnInAForkedChild) {
  for (const std::size_t workers : {std::size_t{0}, std::size_t{2}}) {
    DataLoader loader = some_loader(workers);
    ASSERT_TRUE(loader.next());
    const int refused = in_child([&] {
      const auto error = test::error_of([&] { loader.next(); });
      loader.stop();
      return error && error->message().find("forked") != std::string::npos ? 7 : 1;
    });
    EXPECT_EQ(refused, 7) << workers;
    EXPECT_EQ(loader.next()->indices.front(), 2);
  }
}

TEST(LoaderHandle, EndsInAForkedChildWhereOthersBegin) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads";
#endif
  if (test::emulator() != nullptr) GTEST_SKIP() << "QEMU ends a child that starts threads";
  for (const std::size_t workers : {std::size_t{0}, std::size_t{2}}) {
    DataLoader loader = some_loader(workers);
    ASSERT_TRUE(loader.next());
    const int moved = in_child([&] {
      { const DataLoader mine = std::move(loader); }
      DataLoader other = some_loader(2);
      return other.next() ? 7 : 1;
    });
    EXPECT_EQ(moved, 7) << workers;
    const int assigned = in_child([&] {
      loader = some_loader(1);
      return loader.next() ? 7 : 1;
    });
    EXPECT_EQ(assigned, 7) << workers;
    EXPECT_EQ(loader.next()->indices.front(), 2);
  }
}

TEST(LoaderHandle, IsARange) {
  DataLoader loader = some_loader(1);
  std::int64_t samples = 0;
  std::ranges::for_each(loader, [&](const Batch& batch) { samples += batch.size(); });
  EXPECT_EQ(samples, 64);
#if !defined(__clang__) || __clang_major__ >= 16  // older ones do not know libstdc++'s views
  for (const std::int64_t size : loader | std::views::transform([](const Batch& batch) { return batch.size(); })) {
    EXPECT_EQ(size, 2);
  }
#endif
}

TEST(LoaderHandle, AssignedToItselfGoesOn) {
  for (const std::size_t workers : {std::size_t{0}, std::size_t{2}}) {
    DataLoader loader = some_loader(workers);
    ASSERT_TRUE(loader.next());
    DataLoader& same = loader;
    loader = std::move(same);
    EXPECT_EQ(loader.next()->indices.front(), 2);
  }
}

/// Says that it has ten indices.
class Mistaken final : public SamplerInterface {
 public:
  explicit Mistaken(std::int64_t given) : given_(given) {}
  std::int64_t size() const noexcept override { return 10; }
  Order order(std::uint64_t, std::uint64_t) const override { return Order::range(given_); }

 private:
  std::int64_t given_;
};

TEST(LoaderHandle, AnOrderThatNoMemoryHoldsIsOutOfMemory) {
  const Tensor empty(Buffer::allocate(0), DType::float32, Shape{4'000'000'000'000'000'000, 0});
  DataLoader shuffled(rows(empty), {.batch_size = 4, .shuffle = true});
  EXPECT_EQ(test::code_of([&] { shuffled.next(); }), ErrorCode::kOutOfMemory);
  DataLoader in_order(rows(empty), {.batch_size = 4});
  EXPECT_EQ(in_order.next()->indices, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

class MistakenBatches final : public BatchSamplerInterface {
 public:
  std::int64_t size() const noexcept override { return 3; }
  BatchOrder batches(std::uint64_t, std::uint64_t) const override { return {Order::range(3), {1, 3}}; }
};

TEST(LoaderHandle, SamplersThatGiveOtherNumbersThanTheySayAreRefused) {
  for (const std::int64_t given : {9, 11, 50, 0}) {
    DataLoader loader(rows(test::numbered_rows(64, 3)), {.batch_size = 4, .sampler = Mistaken(given)});
    const auto error = test::error_of([&] { loader.next(); });
    ASSERT_TRUE(error) << given;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("its size() is 10"));
  }
  DataLoader loader(rows(test::numbered_rows(64, 3)), {.batch_sampler = MistakenBatches()});
  EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kInvalidArgument);
}

TEST(LoaderHandle, AnIterationEndsWhereAnotherBegins) {
  for (const std::size_t workers : {0, 2}) {
    DataLoader loader = some_loader(workers);
    int inner = 0;
    const auto error = test::error_of([&] {
      for (const Batch& outer : loader) {
        for (const Batch& batch : loader) inner += static_cast<int>(batch.size() / outer.size());
      }
    });
    ASSERT_TRUE(error) << workers;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("another began"));
    EXPECT_EQ(inner, 32);
    const std::vector<std::function<void()>> ends = {[&] { loader.restart(); }, [&] { loader.set_epoch(5); },
                                                     [&] { loader.seek(loader.position()); }};
    for (const auto& end : ends) {
      auto at = loader.begin();
      ++at;
      end();
      EXPECT_EQ(test::code_of([&] { ++at; }), ErrorCode::kInvalidArgument) << workers;
      EXPECT_TRUE(loader.next());
    }
  }
}

TEST(LoaderHandle, AFunctionThatAsksItsOwnLoaderIsRefused) {
  DataLoader* self = nullptr;
  const Dataset asking = rows(test::numbered_rows(4, 3)).map([&self](const Value& sample) {
    self->next();
    return sample;
  });
  for (const int workers : {0, 2}) {
    // By way of another loader too, whose function asks in the same thread.
    const Dataset by_way = rows(test::numbered_rows(4, 3)).map([&asking](const Value& sample) {
      DataLoader(asking, {.num_workers = 0}).next();
      return sample;
    });
    for (const Dataset& of : {asking, by_way}) {
      DataLoader loader(of, {.num_workers = workers});
      self = &loader;
      const auto error = test::error_of([&] { loader.next(); });
      ASSERT_TRUE(error) << workers;
      EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error->message(), HasSubstr("by a function that it calls"));
    }
  }
}

TEST(LoaderHandle, AnIterationTakesNoMoreThanIsLookedAt) {
  for (const int workers : {0, 2}) {
    DataLoader loader = some_loader(workers);
    auto at = loader.begin();
    EXPECT_EQ(loader.position().batch, 0);
    EXPECT_EQ(at->indices.front(), 0);
    ++at;
    EXPECT_EQ(loader.position().batch, 1);
    EXPECT_EQ((*at).indices.front(), 2);
    EXPECT_EQ(loader.next()->indices.front(), 4);
#if !defined(__clang__) || __clang_major__ >= 16  // older ones do not know libstdc++'s views
    std::int64_t taken = 0;
    for (const Batch& batch : loader | std::views::take(3)) taken += batch.size();
    EXPECT_EQ(taken, 6);
    EXPECT_EQ(loader.next()->indices.front(), 6);
#endif
  }
}

/// A loader of which a thread waits for the first batch, until `go_on` is called.
class Waiting {
 public:
  Waiting()
      : loader_(rows(test::numbered_rows(4, 3)).map([this](const Value& sample) {
          is_called_ = true;
          is_called_.notify_all();
          may_go_on_.wait(false);
          return sample;
        }),
                {.num_workers = 1}),
        other_(std::async(std::launch::async, [this] { return loader_.next().has_value(); })) {
    is_called_.wait(false);
  }
  ~Waiting() { go_on(); }
  void go_on() {
    may_go_on_ = true;
    may_go_on_.notify_all();
  }

  std::atomic<bool> is_called_ = false;
  std::atomic<bool> may_go_on_ = false;
  DataLoader loader_;
  std::future<bool> other_;
};

TEST(LoaderHandle, WaitsNoLongerThanAskedForItsTurn) {
  Waiting waiting;
  EXPECT_TRUE(waiting.loader_.next_for(0).timed_out);
  waiting.go_on();
  EXPECT_TRUE(waiting.other_.get());
  EXPECT_TRUE(waiting.loader_.next());
}

TEST(LoaderHandle, AStopReachesThoseThatWaitForTheirTurn) {
  // Nobody sees when a thread begins to wait; one that is too late gets a batch.
  bool is_stopped = false;
  for (int i = 0; i < 1000 && !is_stopped; ++i) {
    Waiting waiting;
    std::latch about_to_ask(1);
    auto third = std::async(std::launch::async, [&] {
      about_to_ask.count_down();
      return test::code_of([&] { waiting.loader_.next(); }) == ErrorCode::kCancelled;
    });
    about_to_ask.wait();
    waiting.loader_.stop();
    EXPECT_EQ(test::code_of([&] { waiting.other_.get(); }), ErrorCode::kCancelled);
    waiting.go_on();
    is_stopped = third.get();
    EXPECT_TRUE(waiting.loader_.next());
  }
  EXPECT_TRUE(is_stopped);
}

TEST(LoaderHandle, ABatchOfMoreIndicesThanThereIsMemoryForIsAnError) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Dataset numbers = dataset(kMost, [](std::int64_t index) { return Value(index); });
  for (const int workers : {0, 1}) {
    DataLoader loader(numbers, {.batch_size = kMost, .num_workers = workers});
    EXPECT_EQ(test::code_of([&] { loader.next(); }), ErrorCode::kOutOfMemory);
  }
}

}  // namespace
}  // namespace penstock
