#include "data/sample/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace penstock::data {
namespace {

/// Every element's offsets, in order of the target's indices.
std::vector<std::pair<std::uint64_t, std::uint64_t>> elements(const Shape& shape, const Strides& from,
                                                              const Strides& to, std::size_t itemsize) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out = {{0, 0}};
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> next;
    for (const auto& [f, t] : out) {
      for (std::int64_t i = 0; i < shape[d]; ++i) {
        next.emplace_back(f + static_cast<std::uint64_t>(i * from[d]) * itemsize,
                          t + static_cast<std::uint64_t>(i * to[d]) * itemsize);
      }
    }
    out = std::move(next);
  }
  return out;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> elements(const Runs& runs, std::size_t itemsize) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  runs.for_each([&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = 0; at < runs.run_bytes(); at += itemsize) out.emplace_back(from + at, to + at);
  });
  return out;
}

Strides permuted_strides(const Shape& shape, std::mt19937& random, std::int64_t step) {
  std::vector<std::size_t> order(shape.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  Strides out = shape;
  for (const std::size_t d : order) {
    out[d] = step;
    step *= std::max<std::int64_t>(shape[d], 1) + static_cast<std::int64_t>(random() % 2);
  }
  return out;
}

TEST(Runs, VisitEveryElementOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Shape shape;
    for (std::size_t d = 0, rank = random() % 5; d < rank; ++d) {
      shape.push_back(static_cast<std::int64_t>(random() % 8 == 0 ? 0 : 1 + random() % 4));
    }
    const Strides from =
        random() % 3 == 0 ? shape.contiguous_strides() : permuted_strides(shape, random, 1 + random() % 2);
    const Strides to = random() % 2 == 0 ? shape.contiguous_strides() : permuted_strides(shape, random, 1);
    const std::size_t itemsize = std::size_t{1} << random() % 4;
    const Runs runs(shape, from, to, itemsize);
    auto expected = elements(shape, from, to, itemsize);
    auto actual = elements(runs, itemsize);
    std::sort(expected.begin(), expected.end());
    std::sort(actual.begin(), actual.end());
    ASSERT_EQ(actual, expected) << shape << " from " << from << " to " << to;
  }
}

TEST(Runs, AreAsLongAsBothSidesAllow) {
  const Shape shape{4, 3, 5};
  const Runs whole(shape, shape.contiguous_strides(), shape.contiguous_strides(), 4);
  EXPECT_TRUE(whole.single());
  EXPECT_EQ(whole.run_bytes(), 240u);
  const Runs cut(shape, Strides{20, 5, 1}, shape.contiguous_strides(), 4);
  EXPECT_FALSE(cut.single());
  EXPECT_EQ(cut.run_bytes(), 60u);
  EXPECT_EQ(Runs(shape, shape.fortran_strides(), shape.contiguous_strides(), 4).run_bytes(), 4u);
  EXPECT_EQ(Runs(Shape{0, 3}, Strides{3, 1}, Strides{3, 1}, 4).run_bytes(), 0u);
  EXPECT_TRUE(Runs(Shape{}, Strides{}, Strides{}, 8).single());
  EXPECT_EQ(Runs(Shape{}, Strides{}, Strides{}, 8).run_bytes(), 8u);
}

TEST(Runs, RepeatARowOfStrideZero) {
  const Runs runs(Shape{3, 2}, Strides{0, 1}, Strides{2, 1}, 1);
  EXPECT_EQ(runs.run_bytes(), 2u);
  std::vector<std::uint64_t> from;
  std::vector<std::uint64_t> to;
  runs.for_each([&](std::uint64_t f, std::uint64_t t) {
    from.push_back(f);
    to.push_back(t);
  });
  EXPECT_EQ(from, (std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_EQ(to, (std::vector<std::uint64_t>{0, 2, 4}));
}

}  // namespace
}  // namespace penstock::data
