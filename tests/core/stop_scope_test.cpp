#include "core/stop_scope.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <thread>

namespace penstock::core {
namespace {

TEST(StopScope, AStopOfAnyScopeCounts) {
  EXPECT_FALSE(StopScope::stop_requested());
  std::stop_source outer;
  std::atomic<bool> inner = false;
  const std::stop_token token = outer.get_token();
  const StopScope around(token);
  {
    const std::stop_token never;
    const StopScope nothing(never);
    const StopScope no_flag{static_cast<const std::atomic<bool>*>(nullptr)};
    const StopScope flag(&inner);
    EXPECT_FALSE(StopScope::stop_requested());
    inner = true;
    EXPECT_TRUE(StopScope::stop_requested());
    inner = false;
    outer.request_stop();
    EXPECT_TRUE(StopScope::stop_requested());
  }
  EXPECT_TRUE(StopScope::stop_requested());
  bool elsewhere = true;
  std::thread([&] { elsewhere = StopScope::stop_requested(); }).join();
  EXPECT_FALSE(elsewhere);
}

}  // namespace
}  // namespace penstock::core
