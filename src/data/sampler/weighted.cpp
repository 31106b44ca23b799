// Samplers that draw indices with given probabilities. With replacement, a draw inverts the cumulative sum of the
// weights; a guide table bounds the search to a few steps, because a binary search over millions of weights would miss
// the processor's cache in each step. Without replacement, the indices are sorted by a random number each.

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "data/sampler/drawn.h"
#include "data/sampler/torch_random.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

/// Draws the first index whose cumulative weight exceeds uniform * total. A guide table with one entry for each weight
/// (the first candidate of each equal part of [0, total)) bounds the search to a few steps.
class Cumulative {
 public:
  explicit Cumulative(std::span<const double> weights) {
    // Divided by the largest so that the sum cannot overflow.
    const double largest = *std::max_element(weights.begin(), weights.end());
    cumulative_.reserve(weights.size());
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sum += weights[i] / largest;
      cumulative_.push_back(sum);
      if (weights[i] > 0) last_ = i;
    }
    fill_guide();
  }

  /// How many weights there are.
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(cumulative_.size()); }

  std::int64_t draw(double uniform) const {
    const double at = uniform * cumulative_.back();
    const auto parts = guide_.size() - 1;
    const auto part = std::min(parts - 1, static_cast<std::size_t>(uniform * static_cast<double>(parts)));
    // Rounding can put `at` just outside the part it was found by: one part more on each side covers it.
    const auto first = cumulative_.begin() + static_cast<std::ptrdiff_t>(guide_[part == 0 ? 0 : part - 1]);
    const auto last = cumulative_.begin() + static_cast<std::ptrdiff_t>(guide_[std::min(part + 2, parts)]);
    return std::upper_bound(first, last, at) - cumulative_.begin();
  }

 private:
  void fill_guide() {
    const std::size_t parts = cumulative_.size();
    guide_.resize(parts + 1);
    std::size_t index = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const double at = cumulative_.back() * (static_cast<double>(part) / static_cast<double>(parts));
      while (index < last_ && cumulative_[index] <= at) ++index;
      guide_[part] = index;
    }
    guide_[parts] = last_;
  }

  std::size_t last_ = 0;  ///< the last index with a weight
  std::vector<double> cumulative_;
  std::vector<std::size_t> guide_;
};

class WithReplacement final : public SamplerInterface {
 public:
  WithReplacement(std::span<const double> weights, std::int64_t samples)
      : samples_(samples), weights_(std::make_shared<const Cumulative>(weights)) {}

  std::int64_t size() const noexcept override { return samples_; }
  std::string_view kind() const noexcept override { return "weighted"; }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    return data::drawn(samples_, weights_->size(),
                       [weights = weights_, generator = data::Generator(seed + epoch)](auto out) mutable {
                         using Index = typename decltype(out)::value_type;
                         for (Index& index : out) index = static_cast<Index>(weights->draw(generator.uniform()));
                       });
  }

 private:
  std::int64_t samples_;
  std::shared_ptr<const Cumulative> weights_;  ///< orders outlive the sampler
};

/// Without replacement: the order of exponential variates with rate weights[i], which is the order in which drawing one
/// after the other, each with probability proportional to what is left, would take them (Efraimidis and Spirakis 2006).
class WithoutReplacement final : public SamplerInterface {
 public:
  WithoutReplacement(std::vector<double> weights, std::int64_t samples)
      : samples_(samples), weights_(std::move(weights)) {}

  std::int64_t size() const noexcept override { return samples_; }
  std::string_view kind() const noexcept override { return "weighted without replacement"; }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    struct Arrival {
      double time;
      std::int64_t index;
      bool operator<(const Arrival& other) const {
        return time != other.time ? time < other.time : index < other.index;
      }
    };
    data::Generator generator(seed + epoch);
    std::vector<Arrival> arrivals;
    arrivals.reserve(weights_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const double uniform = generator.uniform();
      if (weights_[i] > 0) arrivals.push_back({-std::log1p(-uniform) / weights_[i], static_cast<std::int64_t>(i)});
    }
    const auto end = arrivals.begin() + samples_;
    std::partial_sort(arrivals.begin(), end, arrivals.end());
    std::vector<std::int64_t> out(static_cast<std::size_t>(samples_));
    std::transform(arrivals.begin(), end, out.begin(), [](const Arrival& arrival) { return arrival.index; });
    return out;
  }

 private:
  std::int64_t samples_;
  std::vector<double> weights_;
};

/// The number of weights above zero.
std::int64_t check_weights(std::span<const double> weights) {
  std::int64_t positive = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("weight {} is {}; weights must be finite and not negative", i, weights[i]));
    }
    if (weights[i] > 0) ++positive;
  }
  return positive;
}

}  // namespace

Sampler sampler::weighted(std::vector<double> weights, Integer num_samples, Flag replacement) {
  const std::int64_t positive = check_weights(weights);
  if (num_samples < 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("num_samples is {}; it must be 0 or more", num_samples));
  }
  if (positive == 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("none of {} is above zero; at least one must be",
                                                          core::counted(weights.size(), "weight")));
  }
  if (replacement) return WithReplacement(weights, num_samples);
  if (num_samples > positive) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("cannot draw {} without replacement from {} above zero; draw fewer, or draw with "
                             "replacement",
                             core::counted(static_cast<std::uint64_t>(num_samples), "sample"),
                             core::counted(static_cast<std::uint64_t>(positive), "weight")));
  }
  return WithoutReplacement(std::move(weights), num_samples);
}

}  // namespace penstock
