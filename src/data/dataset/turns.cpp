#include "data/dataset/turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Products are rounded: a share that is just reached must not be taken for one that is missed.
constexpr double kRounding = 1e-6;

using core::refuse;

}  // namespace

std::vector<double> shares_of(std::size_t parts, std::string_view what, const std::vector<double>& weights) {
  if (parts == 0) refuse(core::format("there is nothing to mix; give one {} or more", what));
  if (weights.size() != parts) {
    refuse(core::format("found {} for {}; give each {} one", core::counted(weights.size(), "weight"),
                        core::counted(parts, what), what));
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      refuse(core::format("weight {} is {}; weights must be finite and not negative", i, weights[i]));
    }
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (largest == 0) refuse("all weights are 0; at least one must be above");
  std::vector<double> shares;
  for (const double weight : weights) shares.push_back(weight / largest);  // so that the sum is finite
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

Turns::Turns(std::vector<double> shares) : shares_(std::move(shares)) {
  const auto some = std::count_if(shares_.begin(), shares_.end(), [](double share) { return share > 0; });
  if (some > 1) ahead_ = 1.0 / (2.0 * static_cast<double>(some) - 2.0);
  begin();
}

void Turns::begin() {
  given_.assign(shares_.size(), 0);
  count_ = 0;
  waiting_ = {};
  due_ = {};
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i] > 0) waiting_.emplace(first_turn(i), i);
  }
}

bool Turns::runs_ahead(std::size_t i, std::int64_t count) const noexcept {
  return shares_[i] * static_cast<double>(count) - static_cast<double>(given_[i]) < ahead_ - kRounding;
}

/// The first turn that part i may have.
std::int64_t Turns::first_turn(std::size_t i) const noexcept {
  constexpr double kNever = 1e18;
  const double about = (static_cast<double>(given_[i]) + ahead_) / shares_[i];
  if (about > kNever) return static_cast<std::int64_t>(kNever);
  std::int64_t turn = std::max(static_cast<std::int64_t>(about) - 1, count_ + 1);
  while (turn > count_ + 1 && !runs_ahead(i, turn - 1)) --turn;
  while (runs_ahead(i, turn)) ++turn;
  return turn;
}

/// Whether each has given just its share. Most often the one that had the last turn has not.
bool Turns::is_balanced(std::size_t last) const noexcept {
  constexpr double kExact = 1e-11;
  if (count_ > kMostPeriod) return false;
  const auto is_even = [this](std::size_t i) {
    const auto given = static_cast<double>(given_[i]);
    return std::abs(shares_[i] * static_cast<double>(count_) - given) <= kExact * given;
  };
  if (!is_even(last)) return false;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (!is_even(i)) return false;
  }
  return true;
}

std::size_t Turns::next() {
  ++count_;
  while (!waiting_.empty() && (waiting_.top().first <= count_ || due_.empty())) {
    const std::size_t i = waiting_.top().second;
    waiting_.pop();
    due_.emplace((1.0 - ahead_ + static_cast<double>(given_[i])) / shares_[i], i);
  }
  const std::size_t best = due_.top().second;
  due_.pop();
  ++given_[best];
  if (is_balanced(best)) {
    period_ = count_;
    begin();
  } else {
    waiting_.emplace(first_turn(best), best);
  }
  return best;
}

}  // namespace penstock::data
