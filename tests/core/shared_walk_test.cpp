#include "core/shared_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "penstock/error.h"

namespace penstock::core {
namespace {

using testing::HasSubstr;

TEST(SharedWalk, NeverRefusesPartsThatAreVisitedOnce) {
  SharedWalk walk("advice");
  std::vector<char> parts(100'000);
  for (const char& part : parts) walk.visit(&part, 1000, 1'000'000);
}

TEST(SharedWalk, LetsALargePartBeHeldAFewTimes) {
  SharedWalk walk("advice");
  const int part = 0;
  walk.visit(&part, 10'000'000);
  for (int i = 1; i < 16; ++i) walk.visit(&part, 10'000'000);
}

TEST(SharedWalk, LetsASmallPartBeHeldOften) {
  SharedWalk walk("advice");
  const int part = 0;
  for (int i = 0; i < 50'000; ++i) walk.visit(&part, 3);
}

TEST(SharedWalk, RefusesWhatWouldNeverEndAndSaysWhatToDo) {
  SharedWalk walk("do this instead");
  const int part = 0;
  try {
    while (true) walk.visit(&part, 2);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLimit);
    EXPECT_THAT(error.what(), HasSubstr("the same parts are held so often that more than"));
    EXPECT_THAT(error.what(), HasSubstr("do this instead"));
  }
}

TEST(SharedWalk, CountsTheTextOfNames) {
  SharedWalk walk("advice");
  const int part = 0;
  walk.visit(&part, 1, 1'000'000);
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) walk.visit(&part, 1, 1'000'000);
      },
      Error);
}

TEST(SharedWalk, RefusesSizesThatDoNotFitIn64Bits) {
  SharedWalk walk("advice");
  const int part = 0;
  EXPECT_THROW(walk.visit(&part, UINT64_MAX), Error);
}

}  // namespace
}  // namespace penstock::core
