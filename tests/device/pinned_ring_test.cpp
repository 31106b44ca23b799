#include "device/pinned_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "device/numa.h"
#include "device/staged_copy.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/memory_policy.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock::device {
namespace {

class ARing : public test::WithDevice {};
class SimulatedRingSetting : public test::WithSimulator {};

TEST_F(ARing, LendsEachSlotOnceAndAgainWhenItIsBack) {
  PinnedRing ring(device, 3);
  std::set<const std::byte*> places;
  {
    std::vector<PinnedRing::Slot> slots;
    for (int i = 0; i < 3; ++i) places.insert(slots.emplace_back(ring.take()).data());
    EXPECT_EQ(places.size(), 3U);
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(places.contains(ring.take().data()));
}

TEST_F(SimulatedRingSetting, DISABLED_Refused) {
  const auto error = test::error_of([this] { PinnedRing::instance(device); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), testing::HasSubstr("PENSTOCK_RING is"));
}

TEST_F(SimulatedRingSetting, IsASizeThatCanBe) {
  for (const char* setting : {"large", "0", "15", "-64", "64MB", "65537", "99999999999999999999999"}) {
    const test::Ended ended = test::run_again(std::string("PENSTOCK_RING=") + setting + " PENSTOCK_SIM_AUDIT=1",
                                              "SimulatedRingSetting.DISABLED_Refused");
    EXPECT_EQ(ended.status, 0) << setting << ": " << ended.output;
  }
}

/// Run where the driver locks no memory that it has not made itself.
TEST_F(SimulatedRingSetting, DISABLED_NotLocked) {
  EXPECT_FALSE(PinnedRing::instance(device).is_locked());
  EXPECT_NE(PinnedRing::instance(device).take().data(), nullptr);
  // Memory that is not locked gains nothing by going through other memory that is not.
  const Stream stream(device);
  const Tensor from = test::pattern(20'000'000);
  const Buffer there = Buffer::allocate(from.nbytes(), device);
  const std::array range{CopyRange{there.data(), from.data(), from.nbytes()}};
  EXPECT_FALSE(copy_staged(StreamAccess::queue(stream), range, Direction::kHostToDevice));
}

TEST_F(SimulatedRingSetting, MayBeWithoutPageLocking) {
  for (const char* code : {"1", "2", "304", "800", "801"}) {
    const test::Ended ended =
        test::run_again(std::string("PENSTOCK_SIM_AUDIT=1 PENSTOCK_SIM_FAULTS=cuMemHostRegister_v2:*:") + code,
                        "SimulatedRingSetting.DISABLED_NotLocked");
    EXPECT_EQ(ended.status, 0) << code << ": " << ended.output;
  }
}

/// Run with a device whose NUMA node is known.
TEST_F(SimulatedRingSetting, DISABLED_OnItsNode) {
  const auto policy = test::memory_policy(PinnedRing::instance(device).take().data());
  std::printf("policy %d\n", policy && policy->nodes.test(0) ? policy->mode : -1);
}

TEST_F(SimulatedRingSetting, LiesOnTheNodeOfTheDeviceItIsMadeFor) {
  const Buffer memory = Buffer::allocate(PinnedRing::kSlotBytes);
  prefer_node({memory.data(), memory.size()}, 0);
  const auto policy = test::memory_policy(memory.data());
  if (!policy || policy->mode != test::MemoryPolicy::kPreferred) GTEST_SKIP() << "the kernel prefers no node";
  const auto said_with = [](const char* node) {
    return test::run_again(std::string("PENSTOCK_SIM_AUDIT=1 PENSTOCK_SIM_NUMA=") + node,
                           "SimulatedRingSetting.DISABLED_OnItsNode")
        .output;
  };
  EXPECT_THAT(said_with("0"), testing::HasSubstr("policy 1\n"));
  EXPECT_THAT(said_with("900"), testing::HasSubstr("policy -1\n"));
}

}  // namespace
}  // namespace penstock::device
