#include "data/sample/work.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/errors.h"

namespace penstock::data {
namespace {

TEST(CallContext, SaysWhenItIsCancelled) {
  CallContext call;
  call.check_cancelled();
  std::atomic<bool> flag{false};
  call.cancelled = &flag;
  call.check_cancelled();
  flag = true;
  EXPECT_EQ(test::code_of([&] { call.check_cancelled(); }), ErrorCode::kCancelled);
}

TEST(Guesses, HoldWhenEachFileIsConfirmed) {
  Guesses guesses(true);
  EXPECT_TRUE(guesses.hold());
  EXPECT_FALSE(guesses.any());
  guesses.assume();
  guesses.assume();
  EXPECT_TRUE(guesses.any());
  guesses.confirm();
  EXPECT_FALSE(guesses.hold());
  std::jthread([&] { guesses.confirm(); }).join();
  EXPECT_TRUE(guesses.hold());
  std::jthread([&] { guesses.refute(); }).join();
  EXPECT_TRUE(guesses.refuted());
  EXPECT_FALSE(guesses.hold());
}

}  // namespace
}  // namespace penstock::data
