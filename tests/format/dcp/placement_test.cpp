#include "format/dcp/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/errors.h"

namespace penstock::format::dcp {
namespace {

using Numbers = std::vector<std::int64_t>;

Value list_of(const Numbers& numbers) {
  std::vector<Value> items;
  for (const std::int64_t number : numbers) items.push_back(Value::integer(number));
  return Value::list(std::move(items));
}

Value mesh_of(const Numbers& shape, const Numbers& ranks) {
  return Value::dict({{"mesh_shape", list_of(shape)}, {"mesh_data", list_of(ranks)}});
}

Value placement(const std::string& type, std::int64_t dim = 0, std::int64_t turns = 1) {
  return Value::dict({{"type", type}, {"dim", dim}, {"split_factor", turns}});
}

/// What torch.chunk gives: part `number` of `parts`.
Numbers chunk(const Numbers& list, std::int64_t parts, std::int64_t number) {
  const auto size = static_cast<std::int64_t>(list.size());
  const std::int64_t each = (size + parts - 1) / parts;
  const std::int64_t from = std::min(size, each * number);
  return {list.begin() + from, list.begin() + std::min(size, from + each)};
}

/// The same as torch says it: a strided shard is cut into `turns` pieces, each of these into parts, which are joined.
Numbers strided(const Numbers& list, std::int64_t turns, std::int64_t parts, std::int64_t number) {
  Numbers out;
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    const Numbers piece = chunk(chunk(list, turns, turn), parts, number);
    out.insert(out.end(), piece.begin(), piece.end());
  }
  return out;
}

/// The elements of one dimension, in the order in which the rank's tensor has them.
Numbers elements_of(const PlacedPart& part, std::size_t dim, std::int64_t size) {
  Numbers out(static_cast<std::size_t>((*part.shape)[dim]), -1);
  for (const PlacedBox& each : part.boxes) {
    for (std::int64_t i = 0; i < each.box.shape[dim]; ++i) {
      EXPECT_LT(each.box.at[dim] + i, size);
      out.at(static_cast<std::size_t>(each.inside[dim] + i)) = each.box.at[dim] + i;
    }
  }
  return out;
}

TEST(PartOf, IsWhatTorchCutsElementByElement) {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    const Numbers shape{draw(1, 13), draw(1, 13)};
    const Numbers mesh{draw(1, 4), draw(1, 4)};
    Numbers ranks;
    for (std::int64_t i = 0; i < mesh[0] * mesh[1]; ++i) ranks.push_back(10 + i * 3);
    std::shuffle(ranks.begin(), ranks.end(), random);
    const std::size_t number = static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(ranks.size()) - 1));
    const Numbers place{static_cast<std::int64_t>(number) / mesh[1], static_cast<std::int64_t>(number) % mesh[1]};
    std::vector<Numbers> expected(2);
    for (std::size_t d = 0; d < 2; ++d) {
      for (std::int64_t i = 0; i < shape[d]; ++i) expected[d].push_back(i);
    }
    std::vector<Value> placements;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t dim = draw(0, 1);
      const std::int64_t turns = draw(1, 4);
      Numbers& list = expected[static_cast<std::size_t>(dim)];
      switch (draw(0, 2)) {
        case 0:
          placements.push_back(placement("Replicate"));
          break;
        case 1:
          placements.push_back(placement("Shard", dim));
          list = chunk(list, mesh[i], place[i]);
          break;
        default:
          placements.push_back(placement("StridedShard", dim, turns));
          list = strided(list, turns, mesh[i], place[i]);
      }
    }
    const PlacedPart part = part_of(Shape(std::span<const std::int64_t>(shape)), Mesh(mesh_of(mesh, ranks), "w"),
                                    Value::list(std::move(placements)), ranks[number], "w");
    std::int64_t elements = 0;
    for (const PlacedBox& each : part.boxes) elements += each.box.shape.numel();
    ASSERT_EQ(elements, static_cast<std::int64_t>(expected[0].size() * expected[1].size()));
    ASSERT_EQ(part.shape->numel(), elements);
    if (elements == 0) continue;
    for (std::size_t d = 0; d < 2; ++d) ASSERT_EQ(elements_of(part, d, shape[d]), expected[d]) << round;
  }
}

TEST(PartOf, NamesWhatCannotBe) {
  const auto error = [](const Value& mesh, std::vector<Value> placements, std::int64_t rank = 1) {
    const auto found = test::error_of([&] {
      part_of({std::int64_t{1} << 62, 4}, Mesh(mesh, "w"), Value::list(std::move(placements)), rank, "w");
    });
    return std::pair(found.value().code(), found.value().tensor());
  };
  const Value two = mesh_of({2}, {0, 1});
  const std::pair corrupt(ErrorCode::kCorrupt, std::string("w"));
  EXPECT_EQ(error(two, {placement("Shard", 2)}), corrupt);
  EXPECT_EQ(error(two, {placement("Shard", -1)}), corrupt);
  EXPECT_EQ(error(two, {placement("StridedShard", 0, 0)}), corrupt);
  EXPECT_EQ(error(two, {}), corrupt);
  EXPECT_EQ(error(two, {placement("Shard", 0)}, 2), corrupt);
  EXPECT_EQ(error(two, {Value::integer(1)}), corrupt);
  EXPECT_EQ(error(mesh_of({2}, {0, 0}), {placement("Shard", 0)}), corrupt);
  EXPECT_EQ(error(mesh_of({3}, {0, 1}), {placement("Shard", 0)}), corrupt);
  EXPECT_EQ(error(mesh_of({0}, {}), {placement("Shard", 0)}), corrupt);
  EXPECT_EQ(error(mesh_of({std::int64_t{1} << 33, std::int64_t{1} << 33}, {0, 1}), {placement("Shard", 0)}), corrupt);
  EXPECT_EQ(error(mesh_of({-2}, {0, 1}), {placement("Shard", 0)}), corrupt);
  EXPECT_EQ(error(two, {placement("Partial", 0)}).first, ErrorCode::kUnsupported);
  EXPECT_EQ(error(two, {placement("StridedShard", 0, std::int64_t{1} << 61)}).first, ErrorCode::kLimit);
}

}  // namespace
}  // namespace penstock::format::dcp
