#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "data/support.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Choice = LoaderStats::Choice;

/// Two workers that read files for 10 s and are never idle; the caller waits for 9 s of it.
LoaderStats reading() {
  LoaderStats stats;
  stats.batches = 1000;
  stats.samples = 32000;
  stats.files_opened = 32000;
  stats.workers = stats.processors = 2;
  stats.open_seconds = 4;
  stats.read_seconds = 12;
  stats.decode_seconds = 1;
  stats.copy_seconds = 3;
  stats.compute_seconds = 20;
  stats.worker_capacity = 20;
  stats.process_seconds = 20;
  stats.wait_seconds = 9;
  stats.caller_seconds = 1;
  return stats;
}

TEST(LoaderStats, NamesTheLargestStageWhereTheLoaderIsTheWall) {
  const LoaderStats stats = reading();
  EXPECT_EQ(stats.bottleneck(), "read");
  EXPECT_EQ(stats.limit(),
            "the loader is the limit, at 80 % of what open+read+close of these files can do here: reading files takes "
            "60 % of the time of 2 workers; the caller waits 90 % of the time and could take 1000 batches/s");
  LoaderStats copying = reading();
  copying.copy_seconds = 15;
  copying.read_seconds = 0;
  copying.files_opened = 0;
  EXPECT_EQ(copying.bottleneck(), "copy");
  EXPECT_THAT(copying.limit(), ::testing::Not(HasSubstr("open+read+close")));
  LoaderStats calling = reading();
  calling.function_seconds = 13;
  calling.read_seconds = 0;
  EXPECT_EQ(calling.bottleneck(), "function");
  EXPECT_THAT(calling.limit(), HasSubstr("calling the program's functions takes 62 %"));
}

TEST(LoaderStats, TellsWorkersThatWaitForStorage) {
  LoaderStats stats = reading();
  stats.compute_seconds = 5;
  EXPECT_EQ(stats.bottleneck(), "read");
  EXPECT_THAT(stats.limit(), HasSubstr("who wait for storage for 75 %"));
}

TEST(LoaderStats, SaysWhatLimitsRequestsWhereFilesAreReadByUrl) {
  LoaderStats stats = reading();
  EXPECT_THAT(stats.limit(), ::testing::Not(HasSubstr("by URL")));
  stats.remote = {.requests = 1000, .first_byte_seconds = 9, .transfer_seconds = 1};
  EXPECT_THAT(stats.limit(), HasSubstr("of the requests by URL, the limit is latency"));
  EXPECT_THAT(stats.to_string(), HasSubstr("1000 requests by URL"));
  stats.copy_seconds = 15;  // where they are not what the loop waits for
  EXPECT_THAT(stats.limit(), ::testing::Not(HasSubstr("by URL")));
}

TEST(LoaderStats, NamesTheCallerWhereItHardlyWaits) {
  LoaderStats stats = reading();
  stats.wait_seconds = 0.2;
  stats.caller_seconds = 9.8;
  stats.read_seconds = 2;
  EXPECT_EQ(stats.bottleneck(), "caller");
  EXPECT_EQ(stats.limit(),
            "the caller is the limit: it takes 102 batches/s and waits 2 % of the time, while the loader alone could "
            "bring about 200 batches/s");
}

TEST(LoaderStats, DoesNotTakeBusyProcessorsForTheHandOver) {
  LoaderStats stats = reading();
  stats.open_seconds = stats.read_seconds = stats.decode_seconds = 1;
  EXPECT_EQ(stats.bottleneck(), "hand-over");
  EXPECT_THAT(stats.limit(), HasSubstr("idle 70 % of their time"));
  stats.stall_seconds = 12;
  stats.process_seconds = 6;
  stats.compute_seconds = 5;
  EXPECT_EQ(stats.bottleneck(), "processors");
  EXPECT_THAT(stats.limit(), HasSubstr("for 60 % of their time, and this process got 30 % of 2, so other programs"));
  stats.process_seconds = 19;
  EXPECT_THAT(stats.limit(), HasSubstr("this process itself uses 95 % of 2"));
}

TEST(LoaderStats, TheWorkersTimeCountsWhereNobodyLookedAtTheProcess) {
  LoaderStats stats = reading();
  stats.open_seconds = stats.read_seconds = stats.decode_seconds = 1;
  stats.stall_seconds = 12;
  stats.process_seconds = 0;  // an epoch of a few milliseconds
  stats.compute_seconds = 7;
  EXPECT_THAT(stats.limit(), HasSubstr("this process got 35 % of 2"));
  stats.compute_seconds = 19;
  EXPECT_THAT(stats.limit(), HasSubstr("this process itself uses 95 % of 2"));
}

TEST(LoaderStats, NamesTheMemoryBudget) {
  LoaderStats stats = reading();
  stats.read_seconds = 2;
  stats.budget_seconds = 10;
  EXPECT_EQ(stats.bottleneck(), "memory budget");
  EXPECT_THAT(stats.limit(), HasSubstr("wait for it 50 % of their time"));
}

TEST(LoaderStats, SaysNothingOfNothing) {
  EXPECT_EQ(LoaderStats{}.bottleneck(), "nothing");
  EXPECT_THAT(LoaderStats{}.limit(), StartsWith("no batch was taken yet"));
  EXPECT_THAT(LoaderStats{}.to_string(), EndsWith(LoaderStats{}.limit()));
}

TEST(LoaderStats, SaysWhyThereAreSoManyWorkers) {
  LoaderStats stats = reading();
  EXPECT_EQ(stats.workers_because(), "2 workers, as asked");
  stats.workers_tried = 8;
  stats.trial_gain = 1.02;
  stats.choice = Choice::kNoGain;
  EXPECT_EQ(stats.workers_because(), "2 workers: 8 were tried and brought 1.02 times the speed");
  stats.choice = Choice::kUndecided;
  EXPECT_EQ(stats.workers_because(), "2 workers for 2 processors; too few batches to judge by");
}

TEST(LoaderStats, StagesAreAllOfTheWorkersTime) {
  test::TemporaryFolder folder;
  test::write_tensors(folder, test::equal_tensors(64, Shape{2000}), ".npy");
  for (const std::size_t workers : {0U, 1U, 4U}) {
    DataLoader loader(files(folder.path().string()), {.batch_size = 8, .num_workers = workers});
    const auto begin = std::chrono::steady_clock::now();
    for (int epoch = 0; epoch < 5; ++epoch) {
      while (loader.next()) {
      }
    }
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const LoaderStats stats = loader.stats();
    EXPECT_GT(stats.worked_seconds(), 0) << workers;
    EXPECT_LE(stats.worked_seconds(), wall * static_cast<double>(std::max<std::size_t>(workers, 1))) << workers;
    EXPECT_LE(stats.wait_seconds + stats.caller_seconds, wall) << workers;
    EXPECT_LE(stats.worker_capacity, wall * static_cast<double>(workers)) << workers;
    if (workers == 0) {
      EXPECT_LE(stats.worked_seconds(), stats.wait_seconds);
    }
    EXPECT_THAT(stats.to_string(), EndsWith(stats.limit())) << workers;
  }
}

}  // namespace
}  // namespace penstock
