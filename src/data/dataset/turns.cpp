#include "data/dataset/turns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Products are rounded: a share that is just reached must not be taken for one that is missed.
constexpr double kRounding = 1e-6;

[[noreturn]] void refuse(std::string message) { throw Error(ErrorCode::kInvalidArgument, std::move(message)); }

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

Turns::Turns(std::vector<double> shares) : shares_(std::move(shares)), given_(shares_.size(), 0) {
  const auto some = std::count_if(shares_.begin(), shares_.end(), [](double share) { return share > 0; });
  if (some > 1) ahead_ = 1.0 / (2.0 * static_cast<double>(some) - 2.0);
}

std::size_t Turns::next() {
  ++count_;
  std::size_t best = shares_.size();
  double best_due = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i] == 0) continue;
    const double given = static_cast<double>(given_[i]);
    const bool runs_ahead = shares_[i] * static_cast<double>(count_) - given < ahead_ - kRounding;
    const double due = (1.0 - ahead_ + given) / shares_[i];
    if (runs_ahead || due >= best_due) continue;
    best = i;
    best_due = due;
  }
  ++given_[best];
  return best;
}

}  // namespace penstock::data
