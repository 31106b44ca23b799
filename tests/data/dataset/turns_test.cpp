#include "data/dataset/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "data/dataset/mixture.h"
#include "penstock/mix.h"

namespace penstock::data {
namespace {

/// The rule as it is written, which looks at all parts in each turn.
class Looked {
 public:
  explicit Looked(std::vector<double> shares) : shares_(std::move(shares)), given_(shares_.size(), 0) {
    const auto some = std::count_if(shares_.begin(), shares_.end(), [](double share) { return share > 0; });
    if (some > 1) ahead_ = 1.0 / (2.0 * static_cast<double>(some) - 2.0);
  }
  std::size_t next() {
    ++count_;
    std::size_t best = shares_.size();
    double best_due = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (shares_[i] == 0) continue;
      const double due = (1.0 - ahead_ + given_[i]) / shares_[i];
      if (shares_[i] * count_ - given_[i] < ahead_ - 1e-6 || due >= best_due) continue;
      best = i;
      best_due = due;
    }
    ++given_[best];
    return best;
  }

 private:
  std::vector<double> shares_;
  std::vector<double> given_;
  double ahead_ = 0;
  double count_ = 0;
};

std::vector<std::vector<double>> some_weights() {
  std::vector<std::vector<double>> out = {{1},       {1, 1},          {3, 1},       {0.7, 0.3},       {0.7, 0.2, 0.1},
                                          {1, 0, 2}, {1e-3, 1, 1e3},  {1, 1e-12},   {1, 1e-300},      {5, 4, 3, 2, 1},
                                          {1, 2, 4}, {1.0 / 3, 0.25}, {97, 89, 83}, {1e300, 1e300, 1}};
  std::mt19937 random(8);
  for (const std::size_t parts : {2, 3, 17, 300}) {
    std::vector<double> weights(parts);
    for (double& weight : weights) weight = std::uniform_real_distribution<double>(0, 1)(random);
    out.push_back(weights);
    for (double& weight : weights) weight = std::floor(weight * 9);
    weights[0] = 1;
    out.push_back(weights);
  }
  return out;
}

TEST(Turns, AreThoseOfTheRuleUntilTheyRepeat) {
  for (const std::vector<double>& weights : some_weights()) {
    const std::vector<double> shares = shares_of(weights.size(), "dataset", weights);
    Turns turns(shares);
    Looked rule(shares);
    std::vector<std::size_t> first;
    for (int turn = 0; turn < 5000 && turns.period() == 0; ++turn) {
      first.push_back(turns.next());
      ASSERT_EQ(first.back(), rule.next()) << turn;
    }
    for (std::size_t turn = 0; turns.period() != 0 && turn < 5000; ++turn) {
      ASSERT_EQ(turns.next(), first[turn % first.size()]);
    }
  }
}

TEST(Turns, RepeatWhereWeightsAreWholeAndNowhereElse) {
  const auto period_of = [](const std::vector<double>& weights) {
    Turns turns(shares_of(weights.size(), "dataset", weights));
    for (int turn = 0; turn < 3000; ++turn) turns.next();
    return turns.period();
  };
  EXPECT_EQ(period_of({1, 1}), 2);
  EXPECT_EQ(period_of({0.7, 0.3}), 10);
  EXPECT_EQ(period_of({0.7, 0.2, 0.1}), 10);
  EXPECT_EQ(period_of({1, 0, 2}), 3);
  EXPECT_EQ(period_of(std::vector<double>(1000, 3)), 1000);
  EXPECT_EQ(period_of({std::sqrt(2.0), 1}), 0);
  EXPECT_EQ(period_of({1, 1e-12}), 0) << "the second has its turn, late";
}

/// The samples as (part, number in it), by the rule as it is written.
std::vector<std::int64_t> all_by_rule(const std::vector<std::int64_t>& sizes, const std::vector<double>& shares,
                                      const MixOptions& options) {
  Turns turns(shares);
  std::vector<std::int64_t> begins;
  std::int64_t end = 0;
  for (const std::int64_t size : sizes) begins.push_back(std::exchange(end, end + size));
  auto unfinished = std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; });
  std::vector<std::int64_t> all_given(shares.size(), 0);
  std::vector<std::int64_t> out;
  while (options.size ? std::ssize(out) < *options.size : unfinished > 0) {
    const std::size_t part = turns.next();
    const std::int64_t given = ++all_given[part];
    if (!options.size && options.end == MixEnd::kFirst && given > sizes[part]) break;
    out.push_back(begins[part] + (given - 1) % sizes[part]);
    if (given == sizes[part]) --unfinished;
  }
  return out;
}

TEST(Mixture, GivesEachPartsSamplesInOrder) {
  std::mt19937 random(5);
  for (const std::vector<double>& weights : some_weights()) {
    const std::vector<double> shares = shares_of(weights.size(), "dataset", weights);
    std::vector<std::int64_t> sizes(weights.size());
    for (std::int64_t& size : sizes) size = std::uniform_int_distribution<std::int64_t>(1, 60)(random);
    const double least = *std::min_element(weights.begin(), weights.end());
    const bool all_end = least == 0 || *std::max_element(weights.begin(), weights.end()) / least < 1e4;
    for (const MixOptions& options : {MixOptions{}, MixOptions{.end = MixEnd::kAll}, MixOptions{.size = 0},
                                      MixOptions{.size = 1}, MixOptions{.size = 3000}}) {
      if (options.end == MixEnd::kAll && !all_end) continue;
      const std::vector<std::int64_t> expected = all_by_rule(sizes, shares, options);
      const Mixture mixture(sizes, shares, options);
      ASSERT_EQ(mixture.size(), std::ssize(expected));
      for (std::int64_t i = 0; i < mixture.size(); ++i) {
        ASSERT_EQ(mixture.index(i), expected[static_cast<std::size_t>(i)]) << i;
      }
    }
  }
}

TEST(Mixture, OfMoreSamplesThanMemoryHasRoomFor) {
  constexpr std::int64_t kMany = std::int64_t{1} << 50;
  const Mixture mixture({kMany, kMany}, {0.75, 0.25}, {});
  EXPECT_EQ(mixture.size() / 4, kMany / 3);
  EXPECT_EQ(mixture.index(4 * (kMany / 4)) % kMany, 3 * (kMany / 4));
  const Mixture both({kMany, 10}, {0.5, 0.5}, {.end = MixEnd::kAll});
  EXPECT_EQ(both.size(), 2 * kMany - 1);
  EXPECT_EQ(both.index(2 * kMany - 3), kMany + (kMany - 2) % 10);
}

}  // namespace
}  // namespace penstock::data
