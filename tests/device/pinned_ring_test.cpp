#include "device/pinned_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock::device {
namespace {

class ARing : public test::WithDevice {};
class SimulatedRingSetting : public test::WithSimulator {};

TEST_F(ARing, LendsEachSlotOnceAndAgainWhenItIsBack) {
  PinnedRing ring(3);
  std::set<const std::byte*> places;
  {
    std::vector<PinnedRing::Slot> slots;
    for (int i = 0; i < 3; ++i) places.insert(slots.emplace_back(ring.take()).data());
    EXPECT_EQ(places.size(), 3U);
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(places.contains(ring.take().data()));
}

TEST_F(SimulatedRingSetting, DISABLED_Refused) {
  const auto error = test::error_of([] { PinnedRing::instance(); });
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

}  // namespace
}  // namespace penstock::device
