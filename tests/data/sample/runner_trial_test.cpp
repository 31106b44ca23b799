#include "data/sample/runner_trial.h"

#include <gtest/gtest.h>

#include <array>

#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr double kHereSeconds = 1e-3;

/// Makes batches until the trial has decided, with so many seconds for each in the two ways; how many that were.
int decide(RunnerTrial& trial, double here, double runner, int most = 1000) {
  int batches = 0;
  while (!trial.is_decided() && batches < most) {
    const CallWay way = trial.way();
    trial.note(way, way == CallWay::kHere ? here : runner, 10);
    ++batches;
  }
  return batches;
}

RunnerTrial trial_of(std::size_t workers) {
  return {workers, RunnerTrial::Clock::kBatches, [] { return true; }};
}

TEST(RunnerTrial, TheFasterWayStays) {
  RunnerTrial fast = trial_of(2);
  EXPECT_LT(decide(fast, kHereSeconds, kHereSeconds / 2), 30);
  EXPECT_EQ(fast.way(), CallWay::kElsewhere);
  EXPECT_FALSE(fast.lets_go());
  EXPECT_NE(fast.because().find("a sample took 100.0 us in threads and 50.0 us by worker processes"), std::string::npos)
      << fast.because();
  RunnerTrial slow = trial_of(2);
  decide(slow, kHereSeconds, kHereSeconds * 2);
  EXPECT_EQ(slow.way(), CallWay::kHere);
  EXPECT_TRUE(slow.lets_go());
  EXPECT_EQ(slow.because().find("threads call the functions"), 0U) << slow.because();
}

TEST(RunnerTrial, ThreadsStayWhereTheDifferenceIsSmall) {
  RunnerTrial trial = trial_of(2);
  decide(trial, kHereSeconds, kHereSeconds * 0.95);
  EXPECT_EQ(trial.way(), CallWay::kHere);
}

TEST(RunnerTrial, MediansAreCompared) {
  constexpr std::array here{1.0, 1.0, 100.0, 1.0};
  constexpr std::array runner{0.5, 200.0, 0.5, 0.5};
  EXPECT_TRUE(RunnerTrial::runner_is_faster(here, runner));
  EXPECT_FALSE(RunnerTrial::runner_is_faster(runner, here));
  EXPECT_FALSE(RunnerTrial::runner_is_faster(here, {}));
}

TEST(RunnerTrial, ProcessesThatStartAreNotCounted) {
  RunnerTrial trial = trial_of(3);
  int host_batches = 0;
  while (!trial.is_decided()) {
    const CallWay way = trial.way();
    const bool starts = way == CallWay::kElsewhere && ++host_batches <= 3;
    trial.note(way, way == CallWay::kHere ? kHereSeconds : (starts ? 5.0 : kHereSeconds / 2), 10);
  }
  EXPECT_EQ(trial.way(), CallWay::kElsewhere);
}

TEST(RunnerTrial, ARunnerThatIsNotReadyIsWaitedForInThreads) {
  bool is_ready = false;
  RunnerTrial trial(1, RunnerTrial::Clock::kBatches, [&] { return is_ready; });
  EXPECT_EQ(decide(trial, kHereSeconds, kHereSeconds, 100), 100);
  EXPECT_EQ(trial.way(), CallWay::kHere);
  EXPECT_FALSE(trial.lets_go());
  is_ready = true;
  EXPECT_EQ(trial.way(), CallWay::kElsewhere);
}

TEST(RunnerTrial, ARunnerThatCannotStartIsRefused) {
  RunnerTrial trial(1, RunnerTrial::Clock::kBatches,
                    []() -> bool { throw Error(ErrorCode::kIo, "no process can be started"); });
  EXPECT_LT(decide(trial, kHereSeconds, kHereSeconds), 10);
  EXPECT_EQ(trial.because(), "threads call the functions: no process can be started");
}

TEST(RunnerTrial, AShortEpochDecidesNothing) {
  RunnerTrial trial = trial_of(2);
  EXPECT_NE(trial.because().find("none was to be called"), std::string::npos) << trial.because();
  decide(trial, kHereSeconds, kHereSeconds, 3);
  EXPECT_EQ(trial.way(), CallWay::kHere);
  EXPECT_NE(trial.because().find("until both ways have been measured"), std::string::npos) << trial.because();
  decide(trial, kHereSeconds, kHereSeconds / 2);  // the next epochs go on
  EXPECT_EQ(trial.way(), CallWay::kElsewhere);
}

TEST(RunnerTrial, BatchesWithoutSamplesSayNothing) {
  RunnerTrial trial = trial_of(1);
  for (int i = 0; i < 100; ++i) trial.note(trial.way(), kHereSeconds, 0);
  EXPECT_EQ(trial.way(), CallWay::kHere);
  EXPECT_FALSE(trial.is_decided());
}

TEST(RunnerTrial, WhatCannotGetThereIsCalledHereForGood) {
  RunnerTrial trial = trial_of(1);
  trial.refuse("a lambda");
  EXPECT_EQ(decide(trial, kHereSeconds, 0), 0);
  EXPECT_TRUE(trial.lets_go());
  EXPECT_EQ(trial.because(), "threads call the functions: a lambda");
  trial.note(CallWay::kElsewhere, 0, 10);
  trial.refuse("something else");
  EXPECT_EQ(trial.because(), "threads call the functions: a lambda");
}

}  // namespace
}  // namespace penstock::data
