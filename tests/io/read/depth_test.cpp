#include "io/read/depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

namespace penstock::io {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;

constexpr double kRequest = 1 << 20;

/// Storage on a clock of its own: each request waits for `latency` and then for its turn on a line of `rate` bytes a
/// second. `slowdown`: so much slower is the line for each request in flight.
struct Storage {
  double latency = 0.002;
  double rate = 20e9;
  double slowdown = 0;

  double at_best() const { return rate; }
  /// Requests that are enough for the rate, by Little's law.
  double enough() const { return latency * rate / kRequest + 1; }
};

/// A load from it: the queue is filled to the depth's limit at all times.
class SimulatedLoad {
 public:
  SimulatedLoad(Depth& depth, Storage storage, std::uint32_t seed = 0)
      : depth_(depth), storage_(storage), random_(seed) {}

  void change(Storage storage) { storage_ = storage; }

  /// Goes on for so many seconds of the clock; bytes a second.
  double run(double seconds) {
    const double end = now_ + seconds;
    const std::uint64_t before = requests_;
    while (now_ < end) step();
    return static_cast<double>(requests_ - before) * kRequest / seconds;
  }
  std::size_t most() const { return most_; }
  std::size_t least() const { return least_; }
  double noise = 0;  ///< of the latency, as a share

 private:
  void step() {
    while (ends_.size() < depth_.limit()) ask();
    now_ = ends_.top();
    ends_.pop();
    ++requests_;
    const auto clock = Depth::Clock::time_point(std::chrono::duration_cast<nanoseconds>(Seconds(now_)));
    depth_.look(clock, static_cast<std::uint64_t>(static_cast<double>(requests_) * kRequest), requests_,
                ends_.size() + 1 >= depth_.limit() && ends_.size() < depth_.limit());
    most_ = std::max(most_, depth_.limit());
    least_ = std::min(least_, depth_.limit());
  }
  void ask() {
    const double off = std::uniform_real_distribution<double>(-noise, noise)(random_);
    const double rate = storage_.rate / (1 + storage_.slowdown * static_cast<double>(ends_.size()));
    line_ = std::max(line_, now_ + storage_.latency * (1 + off)) + kRequest / rate;
    ends_.push(line_);
  }

  Depth& depth_;
  Storage storage_;
  std::mt19937 random_;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends_;
  double now_ = 1;
  double line_ = 0;
  std::uint64_t requests_ = 0;
  std::size_t most_ = 0;
  std::size_t least_ = 1'000'000;
};

constexpr Depth::Bounds kOfALoad{.first = 8, .most = 256};

TEST(Depth, ReachesTheBandwidthWhateverTheLatency) {
  for (const double latency : {0.0002, 0.001, 0.002, 0.005}) {
    Depth depth(kOfALoad);
    const Storage storage{.latency = latency};
    SimulatedLoad load(depth, storage);
    load.run(0.4);
    EXPECT_GT(load.run(1), 0.93 * storage.at_best()) << latency;
    EXPECT_EQ(depth.finding(), Depth::Finding::kBandwidth) << latency;
    EXPECT_LT(static_cast<double>(depth.enough()), 2.2 * storage.enough() + 4) << latency;
  }
}

TEST(Depth, ALoadOf8GigabytesHasNineTenthsOfItFromItsBeginning) {
  Depth depth(kOfALoad);
  SimulatedLoad load(depth, {});
  EXPECT_GT(load.run(0.4), 0.9 * 20e9);
}

TEST(Depth, GrowsToWhatItMayWhereEachRequestOnlyWaits) {
  Depth depth(kOfALoad);
  SimulatedLoad load(depth, {.latency = 0.05, .rate = 1e12});
  load.run(4);
  EXPECT_EQ(depth.limit(), 256U);
  EXPECT_EQ(depth.finding(), Depth::Finding::kMost);
}

TEST(Depth, FallsWhereManyRequestsSlowTheStorageDown) {
  Depth depth(kOfALoad);
  SimulatedLoad load(depth, {.latency = 0.001, .rate = 2e9, .slowdown = 0.05});
  load.run(4);
  EXPECT_LE(depth.enough(), 8U);
  EXPECT_EQ(depth.finding(), Depth::Finding::kBandwidth);
}

TEST(Depth, FollowsStorageThatChanges) {
  Depth depth(kOfALoad);
  SimulatedLoad load(depth, {.latency = 0.0005, .rate = 2e9});
  load.run(2);
  EXPECT_LE(depth.enough(), 8U);
  load.change({});
  load.run(4);
  EXPECT_GT(load.run(1), 0.85 * 20e9);
  load.change({.latency = 0.0005, .rate = 2e9});
  load.run(4);
  EXPECT_LE(depth.enough(), 16U);
}

// Whatever the storage is like, and however uneven.
TEST(Depth, StaysWithinItsBoundsAndNearTheBestRate) {
  std::mt19937 random(7);
  for (std::uint32_t round = 0; round < 60; ++round) {
    const auto some = [&](double from, double to) { return std::uniform_real_distribution<double>(from, to)(random); };
    const Storage storage{.latency = some(0.0002, 0.005), .rate = some(0.5e9, 30e9)};
    Depth depth(kOfALoad);
    SimulatedLoad load(depth, storage, round);
    load.noise = some(0, 0.3);
    load.run(1);
    const double best = std::min(storage.at_best(), 256 * kRequest / (storage.latency * (1 - load.noise)));
    EXPECT_GT(load.run(1), 0.8 * best) << round << ": " << storage.latency << " s, " << storage.rate;
    EXPECT_LE(load.most(), 256U);
    EXPECT_GE(load.least(), 4U);
  }
}

TEST(Depth, LearnsNothingWhileTheQueueIsNotFull) {
  Depth depth(kOfALoad);
  Depth::Clock::time_point now{};
  for (std::uint64_t i = 0; i < 1000; ++i) depth.look(now += milliseconds(50), i << 20, i, false);
  EXPECT_EQ(depth.limit(), 8U);
  EXPECT_EQ(depth.finding(), Depth::Finding::kNone);
  EXPECT_EQ(depth.enough(), 8U);
}

TEST(Depth, WaitsWhereNothingComesIn) {
  Depth depth({.first = 16, .most = 64, .window = milliseconds(250), .rounds = 0});
  Depth::Clock::time_point now{};
  for (int i = 0; i < 1000; ++i) depth.look(now += milliseconds(50), 0, 0, true);
  EXPECT_EQ(depth.limit(), 16U);
}

TEST(Depth, OneRequestIsLeftWhereNoMoreMayBe) {
  Depth depth({.first = 8, .most = 1});
  SimulatedLoad load(depth, {});
  load.run(1);
  EXPECT_EQ(depth.limit(), 1U);
  EXPECT_EQ(load.most(), 1U);
}

// Requests to a server: bytes are counted as they come in, and time alone makes a window.

/// Bytes a second that a store gives for a number of requests at once.
using Store = std::function<double(double requests)>;

constexpr Depth::Bounds kOfAServer{.first = 16, .most = 64, .window = milliseconds(250), .rounds = 0};

/// The share of the store's best rate that the last of `seconds` had.
double share_of(const Store& store, double best, double seconds, Depth& depth) {
  Depth::Clock::time_point now{};
  double bytes = 0;
  double late = 0;
  double late_seconds = 0;
  constexpr double kTick = 0.05;
  for (double at = 0; at < seconds; at += kTick) {
    const double rate = store(static_cast<double>(depth.limit()));
    bytes += rate * kTick;
    if (at > seconds / 2) {
      late += rate * kTick;
      late_seconds += kTick;
    }
    now += milliseconds(50);
    depth.look(now, static_cast<std::uint64_t>(bytes), 0, true);
  }
  return late / late_seconds / best;
}

TEST(DepthOfAServer, GrowsWhereEachConnectionCarriesLittle) {
  Depth depth(kOfAServer);
  const Store far = [](double requests) { return requests * 20e6; };
  EXPECT_GT(share_of(far, 64 * 20e6, 20, depth), 0.8);
  EXPECT_GT(depth.limit(), 40U);
}

TEST(DepthOfAServer, ShrinksWhereManyRequestsAreSlower) {
  Depth depth(kOfAServer);
  const Store small = [](double requests) { return 470e6 * std::min(1.0, requests / 4) / (1 + requests / 80); };
  share_of(small, 470e6, 20, depth);
  EXPECT_LE(depth.limit(), 12U);
}

TEST(DepthOfAServer, ShrinksWhereMoreRequestsBringNothing) {
  Depth depth(kOfAServer);
  const Store narrow = [](double requests) { return std::min(100e6, requests * 25e6); };
  EXPECT_GT(share_of(narrow, 100e6, 20, depth), 0.9);
  EXPECT_LE(depth.limit(), 12U);
}

TEST(DepthOfAServer, FindsTheNumberThatIsEnough) {
  Depth depth(kOfAServer);
  const Store store = [](double requests) { return std::min(1000e6, requests * 30e6); };
  EXPECT_GT(share_of(store, 1000e6, 30, depth), 0.75);
}

TEST(DepthOfAServer, FollowsAStoreThatChanges) {
  Depth depth(kOfAServer);
  const Store narrow = [](double requests) { return std::min(100e6, requests * 25e6); };
  share_of(narrow, 100e6, 20, depth);
  const Store far = [](double requests) { return requests * 20e6; };
  EXPECT_GT(share_of(far, 64 * 20e6, 40, depth), 0.7);
}

TEST(DepthOfAServer, NeverGivesMoreThanMayBe) {
  Depth::Bounds bounds = kOfAServer;
  bounds.most = 2;
  Depth depth(bounds);
  EXPECT_EQ(depth.limit(), 2U);
  share_of([](double requests) { return requests * 20e6; }, 40e6, 20, depth);
  EXPECT_GE(depth.limit(), 1U);
  EXPECT_LE(depth.limit(), 2U);
}

}  // namespace
}  // namespace penstock::io
