#include "io/remote/hedging.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace penstock::io::remote {
namespace {

using Seconds = Hedging::Seconds;

void answer(Hedging& hedging, int times, double seconds, const std::string& server = "s", double share = 0.05) {
  for (int i = 0; i < times; ++i) hedging.answered(server, Seconds(seconds), share);
}

TEST(Hedging, JudgesNoServerByFewAnswers) {
  Hedging hedging;
  EXPECT_FALSE(hedging.patience("s"));
  answer(hedging, Hedging::kLeastAnswers - 1, 0.2);
  EXPECT_FALSE(hedging.patience("s"));
  answer(hedging, 16, 0.2);
  EXPECT_NEAR(hedging.patience("s")->count(), 0.2, 1e-9);
  EXPECT_FALSE(hedging.patience("another"));
}

TEST(Hedging, WaitsAsLongAsAllButFiveOfAHundred) {
  Hedging hedging;
  for (int i = 0; i < 128; ++i) hedging.answered("s", Seconds(i % 32 == 7 ? 5.0 : 0.3), 0.05);
  EXPECT_NEAR(hedging.patience("s")->count(), 0.3, 1e-9);
  for (int i = 0; i < 128; ++i) hedging.answered("s", Seconds(i % 10 == 7 ? 5.0 : 0.3), 0.05);
  EXPECT_NEAR(hedging.patience("s")->count(), 5, 1e-9);
}

TEST(Hedging, OldAnswersAreForgotten) {
  Hedging hedging;
  answer(hedging, 200, 2);
  answer(hedging, 128, 0.1);
  EXPECT_NEAR(hedging.patience("s")->count(), 0.1, 1e-9);
}

TEST(Hedging, AServerThatAnswersAtOnceIsWaitedForNevertheless) {
  Hedging hedging;
  answer(hedging, 100, 0.0001);
  EXPECT_EQ(*hedging.patience("s"), Hedging::kLeastPatience);
}

TEST(Hedging, SpendsAShareOfTheAnswers) {
  Hedging hedging;
  EXPECT_FALSE(hedging.spend(0));
  answer(hedging, 41, 1);
  EXPECT_TRUE(hedging.spend(0));
  EXPECT_TRUE(hedging.spend(0));
  EXPECT_FALSE(hedging.spend(0));
  answer(hedging, 10'000, 1);
  int spent = 0;
  while (hedging.spend(0)) ++spent;
  EXPECT_EQ(spent, 10) << "not all at once";
  answer(hedging, 100, 1, "s", 0);
  EXPECT_FALSE(hedging.spend(0));
}

TEST(Hedging, ManySmallAnswersAreNoReasonToFetchALargeOneTwice) {
  constexpr std::uint64_t kPart = std::uint64_t{8} << 20;
  Hedging hedging;
  answer(hedging, 400, 1);
  EXPECT_TRUE(hedging.spend(kPart)) << "one part is free";
  EXPECT_FALSE(hedging.spend(kPart));
  for (int i = 0; i < 19; ++i) hedging.answered("s", Seconds(1), 0.05, Seconds(0), kPart);
  EXPECT_FALSE(hedging.spend(kPart));
  for (int i = 0; i < 2; ++i) hedging.answered("s", Seconds(1), 0.05, Seconds(0), kPart);
  EXPECT_TRUE(hedging.spend(kPart));
  EXPECT_FALSE(hedging.spend(kPart));
  EXPECT_TRUE(hedging.spend(Hedging::kLargeBytes));
}

TEST(Hedging, RemembersABoundedNumberOfServers) {
  Hedging hedging;
  for (int i = 0; i < 100; ++i) answer(hedging, 40, 0.2, "server" + std::to_string(i));
  EXPECT_TRUE(hedging.patience("server99"));
  EXPECT_FALSE(hedging.patience("server0"));
}

TEST(Hedging, MakesNoneWhereAnswersWaitForTheirBytes) {
  Hedging hedging;
  for (int i = 0; i < 64; ++i) hedging.answered("narrow", Hedging::Seconds(0.1), 0.05, Hedging::Seconds(0.5));
  EXPECT_FALSE(hedging.patience("narrow"));
  for (int i = 0; i < 64; ++i) hedging.answered("far", Hedging::Seconds(0.1), 0.05, Hedging::Seconds(0.01));
  EXPECT_TRUE(hedging.patience("far"));
  // A local server's bytes take longer than its first one, and no time that matters.
  for (int i = 0; i < 64; ++i) hedging.answered("here", Hedging::Seconds(0.0003), 0.05, Hedging::Seconds(0.004));
  EXPECT_TRUE(hedging.patience("here"));
}

}  // namespace
}  // namespace penstock::io::remote
