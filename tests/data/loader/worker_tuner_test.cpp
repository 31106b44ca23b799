#include "data/loader/worker_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace penstock::data {
namespace {

/// A loader as figures: what some workers bring a second, and how much of their time they compute.
struct Model {
  std::function<double(std::size_t workers)> rate;
  double computing = 0.02;
  double waiting = 1.0;  ///< of the caller
  double stalled = 0.0;  ///< of the workers' time
};

std::size_t settled(WorkerTuner& tuner, const Model& model, int seconds, WorkerTuner::Figures& figures) {
  constexpr double kStep = 0.02;
  double batches = static_cast<double>(figures.batches);
  for (double left = seconds; left > 0; left -= kStep) {
    const auto workers = static_cast<double>(tuner.workers());
    figures.seconds += kStep;
    figures.caller_waits += kStep * model.waiting;
    figures.worked += kStep * workers;
    figures.computed += kStep * workers * model.computing;
    figures.stalled += kStep * workers * model.stalled;
    batches += kStep * model.rate(tuner.workers());
    figures.batches = static_cast<std::uint64_t>(batches);
    tuner.update(figures);
  }
  return tuner.workers();
}

std::size_t settled(std::size_t start, std::size_t most, const Model& model) {
  WorkerTuner tuner(start, most, start);
  WorkerTuner::Figures figures;
  return settled(tuner, model, 20, figures);
}

double as_many(std::size_t workers) { return 100.0 * static_cast<double>(workers); }

TEST(WorkerTuner, AddsWorkersWhileTheyWaitAndMoreBringMore) {
  EXPECT_EQ(settled(2, 64, {as_many}), 64U);
  EXPECT_EQ(settled(3, 40, {as_many}), 40U);
}

TEST(WorkerTuner, StopsWhereMoreBringNothing) {
  const auto up_to_eight = [](std::size_t workers) { return as_many(std::min<std::size_t>(workers, 8)); };
  EXPECT_GE(settled(2, 64, {up_to_eight, 0.05}), 8U);
  EXPECT_LE(settled(2, 64, {up_to_eight, 0.05}), 16U);
  EXPECT_EQ(settled(2, 64, {[](std::size_t) { return 300.0; }}), 2U);
}

TEST(WorkerTuner, SaysWhyItChose) {
  using Choice = WorkerTuner::Choice;
  const auto choice = [](std::size_t start, std::size_t most, const Model& model, int seconds = 3) {
    WorkerTuner tuner(start, most, start);
    WorkerTuner::Figures figures;
    settled(tuner, model, seconds, figures);
    return tuner.choice();
  };
  EXPECT_EQ(choice(4, 4, {as_many}), Choice::kAsked);
  EXPECT_EQ(choice(2, 64, {as_many}, 0), Choice::kUndecided);
  EXPECT_EQ(choice(2, 64, {as_many}, 20), Choice::kMost);
  EXPECT_EQ(choice(2, 64, {as_many, 0.95}), Choice::kComputing);
  EXPECT_EQ(choice(2, 64, {as_many, 0.1, 0.01}), Choice::kCaller);
  EXPECT_EQ(choice(2, 64, {[](std::size_t) { return 300.0; }}), Choice::kNoGain);

  WorkerTuner tuner(2, 64, 2);
  WorkerTuner::Figures figures;
  settled(tuner, {[](std::size_t) { return 300.0; }}, 3, figures);
  EXPECT_EQ(tuner.tried(), 16U);
  EXPECT_NEAR(tuner.gain(), 1, 0.1);
}

TEST(WorkerTuner, LeavesComputingWorkersAlone) {
  EXPECT_EQ(settled(2, 64, {as_many, 0.95}), 2U) << "more would only share the processors";
}

TEST(WorkerTuner, LeavesALoaderAloneThatIsNotTheWall) {
  EXPECT_EQ(settled(2, 64, {as_many, 0.1, 0.01}), 2U) << "the caller hardly waits";
}

TEST(WorkerTuner, NeverChangesAFixedNumber) { EXPECT_EQ(settled(4, 4, {as_many}), 4U); }

TEST(WorkerTuner, TriesAgainWhenStorageChanges) {
  WorkerTuner tuner(2, 64, 2);
  WorkerTuner::Figures figures;
  EXPECT_EQ(settled(tuner, {[](std::size_t) { return 300.0; }}, 5, figures), 2U);
  EXPECT_EQ(settled(tuner, {as_many}, 60, figures), 64U);
}

TEST(WorkerTuner, GoesBackToTheProcessorsWhenStorageHasBecomeFast) {
  WorkerTuner tuner(2, 64, 2);
  WorkerTuner::Figures figures;
  EXPECT_EQ(settled(tuner, {as_many}, 20, figures), 64U);
  // Two processors are shared by all of them, and each batch costs computing alone.
  const auto shared = [](std::size_t workers) { return workers > 8 ? 700.0 : 1000.0; };
  for (int second = 0; second < 20; ++second) {
    settled(tuner, {shared, 1.9 / static_cast<double>(tuner.workers())}, 1, figures);
  }
  EXPECT_EQ(tuner.workers(), 2U);
  EXPECT_EQ(tuner.choice(), WorkerTuner::Choice::kComputing);
}

TEST(WorkerTuner, KeepsWorkersThatABusyProcessorStillNeeds) {
  WorkerTuner tuner(2, 64, 2);
  WorkerTuner::Figures figures;
  const auto up_to_eight = [](std::size_t workers) { return as_many(std::min<std::size_t>(workers, 8)); };
  settled(tuner, {up_to_eight, 0.05}, 20, figures);
  const std::size_t before = tuner.workers();
  for (int second = 0; second < 20; ++second) {
    settled(tuner, {up_to_eight, 1.6 / static_cast<double>(tuner.workers())}, 1, figures);
  }
  EXPECT_GE(tuner.workers(), 8U);
  EXPECT_LE(tuner.workers(), before);
  EXPECT_EQ(tuner.choice(), WorkerTuner::Choice::kNoGain);
  EXPECT_LT(tuner.gain(), 1);
}

TEST(WorkerTuner, GoesBackAlsoWhereOthersHaveMostOfTheProcessors) {
  WorkerTuner tuner(2, 64, 2);
  WorkerTuner::Figures figures;
  EXPECT_EQ(settled(tuner, {as_many}, 20, figures), 64U);
  settled(tuner, {[](std::size_t) { return 500.0; }, 0.01, 1.0, 0.5}, 20, figures);
  EXPECT_LE(tuner.workers(), 4U);
}

TEST(WorkerTuner, MoreProcessorsThanWorkersAtTheStartAreUsed) {
  WorkerTuner tuner(16, 64, 64);
  WorkerTuner::Figures figures;
  EXPECT_EQ(settled(tuner, {as_many, 0.5}, 20, figures), 64U);
}

TEST(WorkerTuner, JudgesNoFewBatches) {
  WorkerTuner tuner(2, 64, 2);
  EXPECT_EQ(tuner.update({.seconds = 10, .caller_waits = 10, .worked = 20, .computed = 0, .batches = 3}), 2U);
  EXPECT_EQ(tuner.update({.seconds = 0.01, .caller_waits = 0.01, .worked = 0.02, .computed = 0, .batches = 5000}), 2U);
}

}  // namespace
}  // namespace penstock::data
