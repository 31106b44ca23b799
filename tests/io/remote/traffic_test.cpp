#include "io/remote/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace penstock::io::remote {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Traffic, GoesToTheInnermostMeterAndWhatIsAroundIt) {
  TrafficMeter outer;
  TrafficMeter inner(&outer);
  TrafficMeter stranger;
  note_traffic({.requests = 100});  // nobody's
  {
    const TrafficScope first(&stranger);
    const TrafficScope second(&outer);
    note_traffic({.requests = 1, .received_bytes = 10});
    {
      const TrafficScope third(&inner);
      note_traffic({.requests = 2, .retries = 1, .received_bytes = 5});
    }
    note_traffic({.throttled = 1, .cached_bytes = 7});
  }
  EXPECT_EQ(inner.total().requests, 2U);
  EXPECT_EQ(outer.total().requests, 3U);
  EXPECT_EQ(outer.total().received_bytes, 15U);
  EXPECT_EQ(outer.total().retries, 1U);
  EXPECT_EQ(outer.total().throttled, 1U);
  EXPECT_EQ(outer.total().cached_bytes, 7U);
  EXPECT_EQ(stranger.total().requests, 0U);
}

TEST(Traffic, AnotherThreadHasAScopeOfItsOwn) {
  TrafficMeter meter;
  const TrafficScope scope(&meter);
  std::jthread([] { EXPECT_EQ(TrafficScope::current(), nullptr); }).join();
  EXPECT_EQ(TrafficScope::current(), &meter);
}

TEST(Traffic, NamesWhatLimitsIt) {
  RemoteTraffic traffic;
  EXPECT_EQ(traffic.limit(), "nothing");
  EXPECT_EQ(traffic.to_string(), "");
  traffic = {.requests = 100, .received_bytes = 2048, .first_byte_seconds = 5, .transfer_seconds = 1};
  EXPECT_EQ(traffic.limit(), "latency");
  EXPECT_THAT(traffic.to_string(), AllOf(HasSubstr("100 requests"), HasSubstr("50.0 ms"), HasSubstr("2 kB")));
  traffic.transfer_seconds = 9;
  EXPECT_EQ(traffic.limit(), "bandwidth");
  traffic.throttled = 5;
  EXPECT_EQ(traffic.limit(), "bandwidth");
  traffic.paused_seconds = 20;
  EXPECT_EQ(traffic.limit(), "throttled");
  traffic.paused_seconds = 0;
  traffic.throttled = 11;
  EXPECT_EQ(traffic.limit(), "throttled");
  EXPECT_EQ((RemoteTraffic{.cached_bytes = 5}.to_string()), "5 bytes came from the disk cache");
}

}  // namespace
}  // namespace penstock::io::remote
