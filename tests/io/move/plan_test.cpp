#include "io/move/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io {
namespace {

using test::code_of;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

TEST(Plan, OfNothingIsEmpty) {
  const std::vector<Piece> empty = {{.offset = 5, .length = 0}, {.buffer = kDiscard, .length = 0}};
  for (const Plan& plan : {make_plan({}), make_plan(empty)}) {
    EXPECT_THAT(plan.ranges, IsEmpty());
    EXPECT_THAT(plan.targets, IsEmpty());
    EXPECT_EQ(plan.payload_bytes, 0U);
    EXPECT_EQ(plan.read_bytes, 0U);
  }
}

TEST(Plan, NeighboursInFileAndBufferAreOneTarget) {
  const std::vector<Piece> pieces = {{0, 0, 100, 10, 0}, {0, 0, 110, 20, 10}};
  const Plan plan = make_plan(pieces);
  EXPECT_THAT(plan.ranges, ElementsAre(ReadRange{0, 100, 30, 0, 1}));
  EXPECT_THAT(plan.targets, ElementsAre(Target{0, 0, 30}));
}

TEST(Plan, ReadsAGapUpToTheLimitAndSkipsALargerOne) {
  const std::vector<Piece> pieces = {{0, 0, 0, 10, 0}, {0, 1, 15, 10, 0}, {0, 2, 31, 10, 0}};
  const Plan plan = make_plan(pieces, {.least_gap = 5, .most_gap = 5});
  EXPECT_THAT(plan.ranges, ElementsAre(ReadRange{0, 0, 25, 0, 3}, ReadRange{0, 31, 10, 3, 1}));
  EXPECT_THAT(plan.targets, ElementsAre(Target{0, 0, 10}, Target{kDiscard, 0, 5}, Target{1, 0, 10}, Target{2, 0, 10}));
  EXPECT_EQ(plan.payload_bytes, 30U);
  EXPECT_EQ(plan.read_bytes, 35U);
}

TEST(Plan, ReadsALongerGapBehindMoreBytes) {
  const ReadCosts costs{.least_gap = 5, .most_gap = 50};
  EXPECT_EQ(costs.gap_behind(0), 5U);
  EXPECT_EQ(costs.gap_behind(320), 40U);
  EXPECT_EQ(costs.gap_behind(kHuge), 50U);
  const std::vector<Piece> pieces = {{0, 0, 0, 320, 0}, {0, 1, 360, 10, 0}, {0, 2, 500, 10, 0}, {0, 3, 516, 10, 0}};
  EXPECT_THAT(make_plan(pieces, costs).ranges,
              ElementsAre(ReadRange{0, 0, 370, 0, 3}, ReadRange{0, 500, 10, 3, 1}, ReadRange{0, 516, 10, 4, 1}));
}

TEST(Plan, OrdersBySourceAndOffset) {
  const std::vector<Piece> pieces = {{1, 0, 0, 4, 0}, {0, 0, 1000000, 4, 4}, {0, 0, 10, 4, 8}};
  const Plan plan = make_plan(pieces);
  EXPECT_THAT(plan.ranges,
              ElementsAre(ReadRange{0, 10, 4, 0, 1}, ReadRange{0, 1000000, 4, 1, 1}, ReadRange{1, 0, 4, 2, 1}));
}

TEST(Plan, NeverJoinsSources) {
  const std::vector<Piece> pieces = {{0, 0, 0, 4, 0}, {1, 0, 4, 4, 4}};
  EXPECT_EQ(make_plan(pieces).ranges.size(), 2U);
}

TEST(Plan, SplitsLongRangesAtMultiplesFromTheirStart) {
  const std::vector<Piece> pieces = {{0, 0, 7, 25, 0}};
  const Plan plan = make_plan(pieces, {.piece = 10});
  EXPECT_THAT(plan.ranges,
              ElementsAre(ReadRange{0, 7, 10, 0, 1}, ReadRange{0, 17, 10, 1, 1}, ReadRange{0, 27, 5, 2, 1}));
  EXPECT_THAT(plan.targets, ElementsAre(Target{0, 0, 10}, Target{0, 10, 10}, Target{0, 20, 5}));
}

TEST(Plan, DoesNotReadAGapAtTheEndOfARange) {
  const std::vector<Piece> pieces = {{0, 0, 0, 8, 0}, {0, 1, 10, 8, 0}};
  const Plan plan = make_plan(pieces, {.least_gap = 4, .most_gap = 4, .piece = 10});
  EXPECT_THAT(plan.ranges, ElementsAre(ReadRange{0, 0, 8, 0, 1}, ReadRange{0, 10, 8, 1, 1}));
  EXPECT_EQ(plan.read_bytes, 16U);
}

TEST(Plan, PiecesThatWantTheSameBytesAreReadApart) {
  const std::vector<Piece> pieces = {{0, 0, 0, 100, 0}, {0, 1, 0, 100, 0}, {0, 2, 50, 100, 0}};
  const Plan plan = make_plan(pieces);
  EXPECT_EQ(plan.ranges.size(), 3U);
  EXPECT_EQ(plan.read_bytes, 300U);
}

TEST(Plan, DuplicatedRunsStayCoalesced) {
  std::vector<Piece> pieces;
  for (std::uint64_t i = 0; i < 100; ++i) {
    pieces.push_back({0, 0, i * 10, 10, i * 10});
    pieces.push_back({0, 1, i * 10, 10, i * 10});
  }
  EXPECT_EQ(make_plan(pieces).ranges.size(), 2U);
}

TEST(Plan, RefusesWhatDoesNotFitIn64Bits) {
  const auto limit = [](const Piece& piece) { return code_of([&] { make_plan({&piece, 1}); }); };
  EXPECT_EQ(limit({.offset = kHuge, .length = 1}), ErrorCode::kLimit);
  EXPECT_EQ(limit({.offset = 1, .length = kHuge}), ErrorCode::kLimit);
  EXPECT_EQ(limit({.length = 2, .buffer_offset = kHuge - 1}), ErrorCode::kLimit);
  const std::vector<Piece> sum = {{0, 0, 0, kHuge, 0}, {0, 1, 0, kHuge, 0}};
  EXPECT_EQ(code_of([&] { make_plan(sum, {.piece = kHuge}); }), ErrorCode::kLimit);
}

TEST(Plan, RefusesImpossibleOptionsAndNoBuffer) {
  const Piece piece = {.length = 1};
  EXPECT_EQ(code_of([&] { make_plan({&piece, 1}, {.piece = 0}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { make_plan({&piece, 1}, {}, 0); }), ErrorCode::kInvalidArgument);
  const Piece nowhere = {.buffer = kDiscard, .length = 1};
  EXPECT_EQ(code_of([&] { make_plan({&nowhere, 1}); }), ErrorCode::kInvalidArgument);
}

/// Everything a plan does, byte by byte: where each byte of each buffer comes from.
class Naive {
 public:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // buffer, offset

  void add(std::uint32_t source, std::uint64_t offset, const Target& target) {
    for (std::uint64_t i = 0; i < target.length; ++i) {
      const bool fresh =
          from_.emplace(Place{target.buffer, target.buffer_offset + i}, std::pair(source, offset + i)).second;
      EXPECT_TRUE(fresh) << "byte " << target.buffer_offset + i << " of buffer " << target.buffer << " is filled twice";
    }
  }
  friend bool operator==(const Naive&, const Naive&) = default;

 private:
  std::map<Place, std::pair<std::uint32_t, std::uint64_t>> from_;
};

Naive wanted(const std::vector<Piece>& pieces) {
  Naive out;
  for (const Piece& p : pieces) out.add(p.source, p.offset, {p.buffer, p.buffer_offset, p.length});
  return out;
}

/// What the plan delivers, checking the rules of a plan on the way.
Naive delivered(const Plan& plan, const ReadCosts& costs, std::size_t max_targets) {
  Naive out;
  std::uint64_t read = 0;
  std::uint64_t payload = 0;
  std::vector<bool> used(plan.targets.size(), false);
  for (const ReadRange& range : plan.ranges) {
    EXPECT_GT(range.length, 0U);
    EXPECT_LE(range.length, costs.piece);
    EXPECT_LE(range.target_count, max_targets);
    std::uint64_t offset = range.offset;
    for (std::size_t t = range.first_target; t < range.first_target + range.target_count; ++t) {
      const Target& target = plan.targets.at(t);
      EXPECT_FALSE(used[t]);
      used[t] = true;
      EXPECT_GT(target.length, 0U);
      if (target.buffer == kDiscard) {
        EXPECT_LE(target.length, costs.gap_behind(offset - range.offset));
        EXPECT_NE(t, range.first_target);
        EXPECT_NE(t, range.first_target + range.target_count - 1);
      } else {
        out.add(range.source, offset, target);
        payload += target.length;
      }
      offset += target.length;
    }
    EXPECT_EQ(offset, range.offset + range.length);
    read += range.length;
  }
  EXPECT_EQ(plan.read_bytes, read);
  EXPECT_EQ(plan.payload_bytes, payload);
  EXPECT_TRUE(std::all_of(used.begin(), used.end(), [](bool u) { return u; }));
  EXPECT_TRUE(std::is_sorted(plan.ranges.begin(), plan.ranges.end(), [](const ReadRange& a, const ReadRange& b) {
    return std::tie(a.source, a.offset) < std::tie(b.source, b.offset);
  }));
  return out;
}

std::vector<Piece> random_pieces(std::mt19937& random) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  std::vector<Piece> pieces(below(40));
  std::map<std::uint32_t, std::uint64_t> end;
  const std::uint64_t spread = std::uint64_t{1} << (4 + below(9));
  const std::uint64_t longest = std::uint64_t{1} << below(8);
  for (Piece& p : pieces) {
    p.source = static_cast<std::uint32_t>(below(2));
    p.buffer = static_cast<std::uint32_t>(below(3));
    p.offset = below(spread);
    p.length = below(longest + 1);
    p.buffer_offset = end[p.buffer];
    end[p.buffer] += p.length + below(2) * below(5);
  }
  return pieces;
}

TEST(Plan, DeliversExactlyWhatIsWantedForAnyPieces) {
  std::mt19937 random(20240607);
  for (int round = 0; round < 1500; ++round) {
    SCOPED_TRACE(round);
    const std::vector<Piece> pieces = random_pieces(random);
    const std::uint64_t gap = random() % 20;
    const ReadCosts costs = {.least_gap = gap, .most_gap = gap + random() % 20, .piece = 1 + random() % 100};
    const std::size_t max_targets = 1 + random() % 6;
    const Plan plan = make_plan(pieces, costs, max_targets);
    ASSERT_TRUE(delivered(plan, costs, max_targets) == wanted(pieces));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Plan, DoesNotDependOnTheOrderOfPieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Piece> pieces = random_pieces(random);
    const Plan plan = make_plan(pieces, {.least_gap = 8, .most_gap = 8});
    std::shuffle(pieces.begin(), pieces.end(), random);
    const Plan again = make_plan(pieces, {.least_gap = 8, .most_gap = 8});
    ASSERT_EQ(plan.ranges, again.ranges);
    ASSERT_EQ(plan.targets, again.targets);
  }
}

TEST(Plan, FewerRangesThanPiecesWhenTheyAreClose) {
  std::vector<Piece> pieces;
  for (std::uint64_t i = 0; i < 1000; ++i) pieces.push_back({0, 0, i * 1000, 900, i * 900});
  const Plan plan = make_plan(pieces);
  EXPECT_EQ(plan.ranges.size(), 2U) << "1,999 targets, at most 1,024 in a range";
  EXPECT_EQ(plan.read_bytes - plan.payload_bytes, 998U * 100) << "the gap between the two ranges is not read";
}

}  // namespace
}  // namespace penstock::io
