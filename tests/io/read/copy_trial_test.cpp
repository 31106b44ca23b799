#include "io/read/copy_trial.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::io {
namespace {

/// How many of the next ranges are mapped where that is `ratio` times as fast.
int mapped_of(CopyTrial& trial, double ratio, int ranges) {
  int mapped = 0;
  for (int i = 0; i < ranges; ++i) {
    const bool next = trial.map_next();
    trial.done(next, next ? ratio * 5e9 : 5e9);
    if (next) ++mapped;
  }
  return mapped;
}

TEST(CopyTrial, TriesBothAndTakesTheFaster) {
  for (const bool checksums : {false, true}) {
    CopyTrial faster(checksums);
    EXPECT_NEAR(mapped_of(faster, 1.5, 640), 627, 2);
    CopyTrial slower(checksums);
    EXPECT_NEAR(mapped_of(slower, 0.7, 640), 13, 2);
  }
}

TEST(CopyTrial, InDoubtWhatIsCheckedIsMapped) {
  CopyTrial checked(true);
  EXPECT_GT(mapped_of(checked, 0.98, 640), 590);
  CopyTrial unchecked(false);
  EXPECT_LT(mapped_of(unchecked, 1.03, 640), 50);
}

TEST(CopyTrial, UnmappingCounts) {
  constexpr std::uint64_t kRange = 8'000'000;
  for (const bool checksums : {false, true}) {
    CopyTrial trial(checksums);
    EXPECT_FALSE(trial.knows_unmapping());
    mapped_of(trial, 1.5, 6);
    EXPECT_TRUE(trial.map_next());
    trial.unmapped(10 * kRange, 10 * kRange / 10e9);  // 5 * 1.5 GB/s becomes 4.3
    EXPECT_TRUE(trial.knows_unmapping());
    EXPECT_FALSE(trial.map_next());
    trial.unmapped(10 * kRange, 10 * kRange / 50e9);  // the first was held up
    EXPECT_TRUE(trial.map_next());
  }
}

TEST(CopyTrial, OneSlowRangeDecidesNothing) {
  CopyTrial trial(false);
  for (int i = 0; i < 6; ++i) {
    const bool next = trial.map_next();
    trial.done(next, next && i > 1 ? 9e9 : next ? 1e8 : 5e9);
  }
  EXPECT_TRUE(trial.map_next());
}

TEST(CopyTrial, FollowsWhatChanges) {
  CopyTrial trial(false);
  mapped_of(trial, 2, 100);
  mapped_of(trial, 0.5, 200);
  EXPECT_LT(mapped_of(trial, 0.5, 128), 6);
  mapped_of(trial, 2, 400);
  EXPECT_GT(mapped_of(trial, 2, 128), 120);
}

TEST(CopyTrial, WhatIsNearlyAsFastIsTriedMoreOften) {
  CopyTrial trial(true);
  mapped_of(trial, 0.9, 6);
  EXPECT_FALSE(trial.map_next());
  EXPECT_GT(mapped_of(trial, 1.1, 32), 16) << "the next trial is no further than 16 ranges away";
}

TEST(CopyTrial, GoesByTurnsUntilBothAreDone) {
  CopyTrial trial(false);
  int mapped = 0;
  for (int i = 0; i < 100; ++i) mapped += trial.map_next() ? 1 : 0;
  EXPECT_EQ(mapped, 50) << "ranges that other threads are at";
}

}  // namespace
}  // namespace penstock::io
