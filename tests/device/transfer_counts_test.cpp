#include "device/transfer_counts.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "penstock/error.h"
#include "penstock/transfer.h"
#include "support/errors.h"

namespace penstock {
namespace {

using device::CountClock;
using device::Direction;

TEST(DirectionOf, FollowsTheEnds) {
  const Device cpu;
  const Device first(DeviceType::kCuda, 0);
  const Device second(DeviceType::kCuda, 1);
  EXPECT_EQ(device::direction_of(cpu, cpu), Direction::kHostToHost);
  EXPECT_EQ(device::direction_of(cpu, second), Direction::kHostToDevice);
  EXPECT_EQ(device::direction_of(second, cpu), Direction::kDeviceToHost);
  EXPECT_EQ(device::direction_of(first, first), Direction::kDeviceToDevice);
  EXPECT_EQ(device::direction_of(first, second), Direction::kPeerToPeer);
}

TEST(TransferScope, CountsEachDirectionByItself) {
  const TransferScope scope;
  const auto begin = CountClock::now() - std::chrono::milliseconds(20);
  device::count_copies(Direction::kHostToDevice, 2, 300, begin);
  device::count_copies(Direction::kDeviceToHost, 1, 7, CountClock::now());
  device::count_copies(Direction::kPeerToPeer, 5, 11, CountClock::now());
  device::count_copies(Direction::kHostToHost, 9, 9, begin);
  { const device::CountedWait wait(Direction::kDeviceToHost); }
  const TransferStats stats = scope.stats();
  EXPECT_EQ(stats.host_to_device.copies, 2U);
  EXPECT_EQ(stats.host_to_device.bytes, 300U);
  EXPECT_GE(stats.host_to_device.submit_seconds, 0.02);
  EXPECT_EQ(stats.host_to_device.waits, 0U);
  EXPECT_EQ(stats.device_to_host.copies, 1U);
  EXPECT_EQ(stats.device_to_host.waits, 1U);
  EXPECT_EQ(stats.device_to_device.copies, 0U);
  EXPECT_EQ(stats.peer_to_peer.bytes, 11U);
  EXPECT_EQ(stats.total().copies, 8U);
  EXPECT_EQ(stats.total().bytes, 318U);
  EXPECT_EQ(stats.total().waits, 1U);
}

TEST(HelperCounts, CountForTheThreadThatMadeThem) {
  const TransferScope all;
  const TransferScope own(TransferScope::Threads::kCurrent);
  const auto copy = [] {
    device::count_copies(Direction::kHostToDevice, 1, 10, CountClock::now());
    const device::CountedWait wait(Direction::kDeviceToHost);
  };
  {
    device::HelperCounts counts;
    counts.run(copy);
    std::thread helper([&] {
      copy();  // of the helper's own
      counts.run(copy);
      counts.run(copy);
    });
    helper.join();
  }
  EXPECT_EQ(own.stats().host_to_device.copies, 3U);
  EXPECT_EQ(own.stats().host_to_device.bytes, 30U);
  EXPECT_EQ(own.stats().device_to_host.waits, 3U);
  EXPECT_EQ(all.stats().host_to_device.copies, 4U);
}

TEST(TransferScope, CountsAllThreadsOrItsOwn) {
  const TransferScope all;
  const TransferScope own(TransferScope::Threads::kCurrent);
  const auto copy = [] { device::count_copies(Direction::kHostToDevice, 1, 10, CountClock::now()); };
  std::thread(copy).join();
  EXPECT_EQ(all.stats().host_to_device.copies, 1U);
  EXPECT_EQ(own.stats().host_to_device.copies, 0U);
  copy();
  EXPECT_EQ(all.stats().host_to_device.copies, 2U);
  EXPECT_EQ(own.stats().host_to_device.copies, 1U);
}

TEST(TransferScope, OfOneThreadIsReadThere) {
  const TransferScope own(TransferScope::Threads::kCurrent);
  const TransferScope all;
  std::optional<ErrorCode> code;
  std::thread([&] {
    code = test::code_of([&] { return own.stats(); });
    EXPECT_NO_THROW(all.stats());
  }).join();
  EXPECT_EQ(code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
