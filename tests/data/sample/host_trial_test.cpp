#include "data/sample/host_trial.h"

#include <gtest/gtest.h>

#include <array>

#include "penstock/error.h"

namespace penstock::data {
namespace {

constexpr double kHereSeconds = 1e-3;

/// Makes batches until the trial has decided, with so many seconds for each in the two ways; how many that were.
int decide(HostTrial& trial, double here, double host, int most = 1000) {
  int batches = 0;
  while (!trial.is_decided() && batches < most) {
    const CallWay way = trial.way();
    trial.note(way, way == CallWay::kHere ? here : host, 10);
    ++batches;
  }
  return batches;
}

HostTrial trial_of(std::size_t workers) {
  return {workers, HostTrial::Clock::kBatches, [] { return true; }};
}

TEST(HostTrial, TheFasterWayStays) {
  HostTrial fast = trial_of(2);
  EXPECT_LT(decide(fast, kHereSeconds, kHereSeconds / 2), 30);
  EXPECT_EQ(fast.way(), CallWay::kHost);
  EXPECT_FALSE(fast.lets_go());
  EXPECT_NE(fast.because().find("a sample took 100.0 us in threads and 50.0 us by worker processes"), std::string::npos)
      << fast.because();
  HostTrial slow = trial_of(2);
  decide(slow, kHereSeconds, kHereSeconds * 2);
  EXPECT_EQ(slow.way(), CallWay::kHere);
  EXPECT_TRUE(slow.lets_go());
  EXPECT_EQ(slow.because().find("threads call the functions"), 0U) << slow.because();
}

TEST(HostTrial, ThreadsStayWhereTheDifferenceIsSmall) {
  HostTrial trial = trial_of(2);
  decide(trial, kHereSeconds, kHereSeconds * 0.95);
  EXPECT_EQ(trial.way(), CallWay::kHere);
}

TEST(HostTrial, MediansAreCompared) {
  constexpr std::array here{1.0, 1.0, 100.0, 1.0};
  constexpr std::array host{0.5, 200.0, 0.5, 0.5};
  EXPECT_TRUE(HostTrial::host_is_faster(here, host));
  EXPECT_FALSE(HostTrial::host_is_faster(host, here));
  EXPECT_FALSE(HostTrial::host_is_faster(here, {}));
}

TEST(HostTrial, ProcessesThatStartAreNotCounted) {
  HostTrial trial = trial_of(3);
  int host_batches = 0;
  while (!trial.is_decided()) {
    const CallWay way = trial.way();
    const bool starts = way == CallWay::kHost && ++host_batches <= 3;
    trial.note(way, way == CallWay::kHere ? kHereSeconds : (starts ? 5.0 : kHereSeconds / 2), 10);
  }
  EXPECT_EQ(trial.way(), CallWay::kHost);
}

TEST(HostTrial, AHostThatIsNotReadyIsWaitedForInThreads) {
  bool is_ready = false;
  HostTrial trial(1, HostTrial::Clock::kBatches, [&] { return is_ready; });
  EXPECT_EQ(decide(trial, kHereSeconds, kHereSeconds, 100), 100);
  EXPECT_EQ(trial.way(), CallWay::kHere);
  EXPECT_FALSE(trial.lets_go());
  is_ready = true;
  EXPECT_EQ(trial.way(), CallWay::kHost);
}

TEST(HostTrial, AHostThatCannotStartIsRefused) {
  HostTrial trial(1, HostTrial::Clock::kBatches,
                  []() -> bool { throw Error(ErrorCode::kIo, "no process can be started"); });
  EXPECT_LT(decide(trial, kHereSeconds, kHereSeconds), 10);
  EXPECT_EQ(trial.because(), "threads call the functions: no process can be started");
}

TEST(HostTrial, AShortEpochDecidesNothing) {
  HostTrial trial = trial_of(2);
  EXPECT_NE(trial.because().find("none was to be called"), std::string::npos) << trial.because();
  decide(trial, kHereSeconds, kHereSeconds, 3);
  EXPECT_EQ(trial.way(), CallWay::kHere);
  EXPECT_NE(trial.because().find("until both ways have been measured"), std::string::npos) << trial.because();
  decide(trial, kHereSeconds, kHereSeconds / 2);  // the next epochs go on
  EXPECT_EQ(trial.way(), CallWay::kHost);
}

TEST(HostTrial, BatchesWithoutSamplesSayNothing) {
  HostTrial trial = trial_of(1);
  for (int i = 0; i < 100; ++i) trial.note(trial.way(), kHereSeconds, 0);
  EXPECT_EQ(trial.way(), CallWay::kHere);
  EXPECT_FALSE(trial.is_decided());
}

TEST(HostTrial, WhatCannotGetThereIsCalledHereForGood) {
  HostTrial trial = trial_of(1);
  trial.refuse("a lambda");
  EXPECT_EQ(decide(trial, kHereSeconds, 0), 0);
  EXPECT_TRUE(trial.lets_go());
  EXPECT_EQ(trial.because(), "threads call the functions: a lambda");
  trial.note(CallWay::kHost, 0, 10);
  trial.refuse("something else");
  EXPECT_EQ(trial.because(), "threads call the functions: a lambda");
}

}  // namespace
}  // namespace penstock::data
