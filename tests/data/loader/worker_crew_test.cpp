#include "data/loader/worker_crew.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "data/support.h"

namespace penstock::data {
namespace {

struct Crews {
  std::mutex mutex;
  std::condition_variable work;
  WorkerCrew crew{mutex, work};
};

TEST(WorkerCrew, DoesEachTaskOnceWithoutHelp) {
  Crews crews;
  Workspace own;
  std::vector<std::size_t> done;
  crews.crew.share(5, own.scratch, own.figures, [&](std::size_t task, Scratch&, Figures&) { done.push_back(task); });
  EXPECT_EQ(done, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  const std::scoped_lock lock(crews.mutex);
  EXPECT_FALSE(crews.crew.wants_help());
}

TEST(WorkerCrew, SharesTasksWithWhoeverIsFree) {
  Crews crews;
  Workspace own;
  std::latch both(2);
  std::array<std::atomic<int>, 50> done{};
  Guesses guesses(true);
  for (std::size_t i = 0; i < done.size(); ++i) guesses.assume();
  std::jthread helper([&] {
    Workspace other;
    std::unique_lock lock(crews.mutex);
    crews.work.wait(lock, [&] { return crews.crew.wants_help(); });
    crews.crew.help(other.scratch, other.figures, lock);
  });
  crews.crew.share(done.size(), own.scratch, own.figures, [&](std::size_t task, Scratch&, Figures&) {
    if (task < 2) both.arrive_and_wait();  // so that each thread has one of them
    ++done[task];
    guesses.confirm();
  });
  for (const auto& times : done) EXPECT_EQ(times, 1);
  EXPECT_TRUE(guesses.hold());
}

TEST(WorkerCrew, ThrowsWhatTheFirstFailingTaskThrew) {
  for (int round = 0; round < 20; ++round) {
    Crews crews;
    Workspace own;
    std::latch both(2);
    std::jthread helper([&] {
      Workspace other;
      std::unique_lock lock(crews.mutex);
      crews.work.wait(lock, [&] { return crews.crew.wants_help(); });
      crews.crew.help(other.scratch, other.figures, lock);
    });
    const auto error = test::error_of([&] {
      crews.crew.share(10, own.scratch, own.figures, [&](std::size_t task, Scratch&, Figures&) {
        if (task < 2) both.arrive_and_wait();
        if (task > 0) throw Error(ErrorCode::kIo, "task " + std::to_string(task));
      });
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message(), "task 1");
  }
}

}  // namespace
}  // namespace penstock::data
