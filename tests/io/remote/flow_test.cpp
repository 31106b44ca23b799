#include "io/remote/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

namespace penstock::io::remote {
namespace {

/// Bytes a second that a store gives for a number of requests at once.
using Store = std::function<double(double requests)>;

/// The share of the store's best rate that the last of `seconds` had.
double share_of(const Store& store, double best, double seconds, Flow& flow) {
  Flow::Clock::time_point now{};
  double bytes = 0;
  double late = 0;
  double late_seconds = 0;
  constexpr double kTick = 0.05;
  for (double at = 0; at < seconds; at += kTick) {
    const double rate = store(static_cast<double>(flow.limit()));
    bytes += rate * kTick;
    if (at > seconds / 2) {
      late += rate * kTick;
      late_seconds += kTick;
    }
    now += std::chrono::milliseconds(50);
    flow.look(now, static_cast<std::uint64_t>(bytes), true);
  }
  return late / late_seconds / best;
}

TEST(Flow, GrowsWhereEachConnectionCarriesLittle) {
  Flow flow(64);
  const Store far = [](double requests) { return requests * 20e6; };
  EXPECT_GT(share_of(far, 64 * 20e6, 20, flow), 0.8);
  EXPECT_GT(flow.limit(), 40U);
}

TEST(Flow, ShrinksWhereManyRequestsAreSlower) {
  Flow flow(64);
  const Store small = [](double requests) { return 470e6 * std::min(1.0, requests / 4) / (1 + requests / 80); };
  share_of(small, 470e6, 20, flow);
  EXPECT_LE(flow.limit(), 12U);
}

TEST(Flow, ShrinksWhereMoreRequestsBringNothing) {
  Flow flow(64);
  const Store narrow = [](double requests) { return std::min(100e6, requests * 25e6); };
  EXPECT_GT(share_of(narrow, 100e6, 20, flow), 0.9);
  EXPECT_LE(flow.limit(), 12U);
}

TEST(Flow, FindsTheNumberThatIsEnough) {
  Flow flow(64);
  const Store store = [](double requests) { return std::min(1000e6, requests * 30e6); };
  EXPECT_GT(share_of(store, 1000e6, 30, flow), 0.75);
}

TEST(Flow, FollowsAStoreThatChanges) {
  Flow flow(64);
  const Store narrow = [](double requests) { return std::min(100e6, requests * 25e6); };
  share_of(narrow, 100e6, 20, flow);
  const Store far = [](double requests) { return requests * 20e6; };
  EXPECT_GT(share_of(far, 64 * 20e6, 40, flow), 0.7);
}

TEST(Flow, LearnsNothingFromALoadThatWantsLess) {
  Flow flow(64);
  Flow::Clock::time_point now{};
  for (int i = 0; i < 1000; ++i) flow.look(now += std::chrono::milliseconds(50), 0, false);
  EXPECT_EQ(flow.limit(), Flow::kFirst);
}

TEST(Flow, NeverGivesMoreThanMayBe) {
  Flow flow(2);
  EXPECT_EQ(flow.limit(), 2U);
  share_of([](double requests) { return requests * 20e6; }, 40e6, 20, flow);
  EXPECT_GE(flow.limit(), 1U);
  EXPECT_LE(flow.limit(), 2U);
}

}  // namespace
}  // namespace penstock::io::remote
