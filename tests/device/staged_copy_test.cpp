#include "device/staged_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/task_pool.h"
#include "device/pinned_ring.h"
#include "penstock/buffer.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"
#include "penstock/transfer.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/simulator.h"

namespace penstock::device {
namespace {

constexpr std::size_t kSlot = PinnedRing::kSlotBytes;

template <class Fixture>
class Staged : public Fixture {
 protected:
  void SetUp() override {
    Fixture::SetUp();
    if (!this->IsSkipped() && core::usable_cpus() < 2) GTEST_SKIP() << "one processor copies no faster than a driver";
  }

  /// Both ends of as many copies as there are `sizes`; the device's memory is written by `stream`.
  void make(const std::vector<std::size_t>& sizes, const Stream& stream) {
    const StreamGuard guard(stream);
    for (const std::size_t size : sizes) {
      host.push_back(test::pattern(static_cast<std::int64_t>(size), static_cast<unsigned>(host.size())));
      there.push_back(Buffer::allocate(size, this->device));
      back.emplace_back(size);
      to_device.push_back({there.back().data(), host.back().data(), size});
      to_host.push_back({back.back().data(), there.back().data(), size});
    }
  }
  void expect_all_back() const {
    for (std::size_t i = 0; i < host.size(); ++i) EXPECT_TRUE(std::ranges::equal(back[i], bytes_of(host[i]))) << i;
  }
  static std::span<std::byte> bytes_of(const Tensor& tensor) { return {tensor.data(), tensor.nbytes()}; }
  static bool start(const Stream& stream, const std::vector<CopyRange>& ranges, Direction direction) {
    return copy_staged(StreamAccess::queue(stream), ranges, direction);
  }

  std::vector<Tensor> host;
  std::vector<Buffer> there;
  std::vector<std::vector<std::byte>> back;
  std::vector<CopyRange> to_device;
  std::vector<CopyRange> to_host;
};
using StagedCopy = Staged<test::WithDevice>;
using SimulatedStagedCopy = Staged<test::WithSimulator>;

TEST_F(StagedCopy, CarriesRangesOfEverySizeBothWays) {
  const std::vector<std::vector<std::size_t>> cases = {
      {4 * kSlot},
      {4 * kSlot + 1},
      {0, 5 * kSlot - 1, 0},
      {kSlot - 1, 3 * kSlot, 1, 2, kSlot + 3, 4096},
      std::vector<std::size_t>(700, 30'001),
      {kSlot * PinnedRing::kDefaultSlots * 5 / 4 + 7},
  };
  for (const auto& sizes : cases) {
    host.clear(), there.clear(), back.clear(), to_device.clear(), to_host.clear();
    const Stream stream(device);
    make(sizes, stream);
    ASSERT_TRUE(start(stream, to_device, Direction::kHostToDevice));
    ASSERT_TRUE(start(stream, to_host, Direction::kDeviceToHost));
    expect_all_back();
  }
}

TEST_F(StagedCopy, ReadsTheHostBeforeItReturns) {
  const Stream stream(device);
  make({6 * kSlot}, stream);
  const std::vector<std::byte> kept(bytes_of(host[0]).begin(), bytes_of(host[0]).end());
  ASSERT_TRUE(start(stream, to_device, Direction::kHostToDevice));
  std::memset(host[0].data(), 0xEE, host[0].nbytes());
  ASSERT_TRUE(start(stream, to_host, Direction::kDeviceToHost));
  EXPECT_TRUE(back[0] == kept);
}

TEST_F(StagedCopy, LeavesFewBytesToTheDriver) {
  const Stream stream(device);
  make({4 * kSlot - 1}, stream);
  const TransferScope scope;
  EXPECT_FALSE(worth_staging(4 * kSlot - 1));
  EXPECT_FALSE(start(stream, to_device, Direction::kHostToDevice));
  EXPECT_FALSE(start(stream, {}, Direction::kHostToDevice));
  EXPECT_EQ(scope.stats().total().copies, 0U);
}

TEST_F(StagedCopy, CountsForTheThreadThatCalls) {
  const Stream stream(device);
  make({5 * kSlot, 11}, stream);
  const TransferScope all;
  const TransferScope own(TransferScope::Threads::kCurrent);
  ASSERT_TRUE(start(stream, to_device, Direction::kHostToDevice));
  ASSERT_TRUE(start(stream, to_host, Direction::kDeviceToHost));
  for (const TransferScope* scope : {&all, &own}) {
    EXPECT_EQ(scope->stats().host_to_device.bytes, 5 * kSlot + 11);
    EXPECT_EQ(scope->stats().device_to_host.bytes, 5 * kSlot + 11);
    EXPECT_EQ(scope->stats().host_to_device.copies, 6U);
    EXPECT_EQ(scope->stats().device_to_host.copies, 6U);
  }
}

TEST_F(SimulatedStagedCopy, IsPageLocked) {
  const Stream stream(device);
  make({5 * kSlot}, stream);
  const std::uint64_t before = statistics().pageable_copies;
  ASSERT_TRUE(start(stream, to_device, Direction::kHostToDevice));
  ASSERT_TRUE(start(stream, to_host, Direction::kDeviceToHost));
  EXPECT_EQ(statistics().pageable_copies, before);
}

TEST_F(SimulatedStagedCopy, AFailedCopyIsReportedAndLeavesTheRingUsable) {
  const Stream stream(device);
  make({9 * kSlot}, stream);
  for (const std::uint64_t nth : {1, 4, 9}) {
    constexpr int kInvalidValue = 1;
    test::simulator_function<PenstockSimFail>("penstockSimFail")("cuMemcpyAsync", nth, kInvalidValue);
    const auto copy = [&] { return start(stream, to_device, Direction::kHostToDevice); };
    EXPECT_EQ(test::code_of(copy), ErrorCode::kDeviceFailed) << nth;
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(start(stream, to_device, Direction::kHostToDevice));
    ASSERT_TRUE(start(stream, to_host, Direction::kDeviceToHost));
    expect_all_back();
  }
}

}  // namespace
}  // namespace penstock::device
