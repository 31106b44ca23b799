#include "format/dcp/chunk_runs.h"

#include <gtest/gtest.h>

namespace penstock::format::dcp {
namespace {

TEST(ChunkRuns, WholeRowsAreOneRun) {
  const ChunkRuns runs({{1, 0}, {2, 6}}, {4, 6}, 4);
  EXPECT_EQ(runs.count(), 1U);
  EXPECT_EQ(runs.run_bytes(), 48U);
  EXPECT_EQ(runs.begin(), 24U);
  EXPECT_EQ(runs.end(), 72U);
}

TEST(ChunkRuns, ColumnsAreARunForEachRow) {
  const ChunkRuns runs({{1, 2}, {2, 3}}, {4, 6}, 4);
  EXPECT_EQ(runs.count(), 2U);
  EXPECT_EQ(runs.run_bytes(), 12U);
  EXPECT_EQ(runs.place(0), 32U);
  EXPECT_EQ(runs.place(1), 56U);
  EXPECT_EQ(runs.end(), 68U);
}

TEST(ChunkRuns, FindsTheFirstRunBehindAByte) {
  const ChunkRuns runs({{1, 2}, {2, 3}}, {4, 6}, 4);
  EXPECT_EQ(runs.first_behind(0), 0U);
  EXPECT_EQ(runs.first_behind(43), 0U);
  EXPECT_EQ(runs.first_behind(44), 1U);
  EXPECT_EQ(runs.first_behind(67), 1U);
  EXPECT_EQ(runs.first_behind(68), 2U);
}

TEST(ChunkRuns, AScalarIsOneElement) {
  const ChunkRuns runs({{}, {}}, {}, 8);
  EXPECT_EQ(runs.count(), 1U);
  EXPECT_EQ(runs.run_bytes(), 8U);
}

}  // namespace
}  // namespace penstock::format::dcp
