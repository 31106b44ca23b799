// Turn n of a mixture is turn n % period, and the part that has it has given its samples of all whole periods before,
// those of the blocks before in this period, and those in its block, which are counted. So an index costs the same
// wherever it is, and memory follows the period and not the samples.

#include "data/dataset/mixture.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/turns.h"
#include "data/sample/require_samples.h"

namespace penstock::data {
namespace {

constexpr std::int64_t kLeastBlock = 256;
/// Turns that are kept where their order does not repeat.
constexpr double kMostKept = 4.3e9;

/// About how many turns there are until the mixture ends.
double turns_of(const std::vector<std::int64_t>& sizes, const std::vector<double>& shares, const MixOptions& options) {
  if (options.size) return static_cast<double>(*options.size);
  const bool first = options.end == MixEnd::kFirst;
  double out = first ? std::numeric_limits<double>::infinity() : 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (shares[i] == 0) continue;
    const double turns = static_cast<double>(sizes[i]) / shares[i];
    out = first ? std::min(out, turns) : std::max(out, turns);
  }
  return out;
}

}  // namespace

Mixture::Mixture(std::vector<std::int64_t> sizes, const std::vector<double>& shares, const MixOptions& options)
    : sizes_(std::move(sizes)),
      block_(std::max<std::int64_t>(kLeastBlock, static_cast<std::int64_t>(std::bit_ceil(sizes_.size())) * 4)),
      each_(sizes_.size(), 0) {
  std::int64_t end = 0;
  for (const std::int64_t size : sizes_) {
    begins_.push_back(end);
    end = joined_size(end, size);
  }
  auto unfinished = std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; });
  if (sizes_.size() > 256) turns_ = std::vector<std::uint16_t>();
  if (sizes_.size() > 65'536) turns_ = std::vector<std::uint32_t>();
  Turns turns(shares);
  bool repeats = false;
  while (!repeats) {
    if (options.size ? period_ >= *options.size : unfinished == 0) break;
    const std::size_t part = turns.next();
    if (!options.size && options.end == MixEnd::kFirst && each_[part] == sizes_[part]) break;
    keep(part);
    if (each_[part] == sizes_[part]) --unfinished;
    repeats = turns.period() != 0;
    if (repeats || period_ != Turns::kMostPeriod || turns_of(sizes_, shares, options) <= kMostKept) continue;
    core::refuse(
        core::format("the turns of these weights do not repeat within a million, so that each is kept, and the mixture "
                     "would have about {:.3g}; round the weights so that they are whole numbers with a sum below a "
                     "million, or choose a smaller size",
                     turns_of(sizes_, shares, options)));
  }
  std::visit([](auto& kept) { kept.shrink_to_fit(); }, turns_);
  size_ = options.size ? std::int64_t{*options.size} : repeats ? end_by_size(shares, options.end) : period_;
}

void Mixture::keep(std::size_t part) {
  if (period_ % block_ == 0) given_.insert(given_.end(), each_.begin(), each_.end());
  std::visit(
      [part](auto& kept) { kept.push_back(static_cast<typename std::decay_t<decltype(kept)>::value_type>(part)); },
      turns_);
  ++each_[part];
  ++period_;
}

std::size_t Mixture::part_at(std::int64_t turn) const noexcept {
  return std::visit([turn](const auto& kept) -> std::size_t { return kept[static_cast<std::size_t>(turn)]; }, turns_);
}

std::int64_t Mixture::count_in(std::int64_t first, std::int64_t last, std::size_t part) const noexcept {
  return std::visit(
      [=](const auto& kept) -> std::int64_t {
        const auto turn = static_cast<typename std::decay_t<decltype(kept)>::value_type>(part);
        return std::count(kept.begin() + first, kept.begin() + last, turn);
      },
      turns_);
}

std::int64_t Mixture::index(std::int64_t i) const noexcept {
  const std::int64_t turn = i % period_;
  const std::int64_t block = turn / block_;
  const std::size_t part = part_at(turn);
  const std::int64_t given = i / period_ * each_[part] +
                             given_[static_cast<std::size_t>(block) * sizes_.size() + part] +
                             count_in(block * block_, turn, part);
  return begins_[part] + given % sizes_[part];
}

/// How many turns there are until a part would have to give a sample again, or until all have given all.
std::int64_t Mixture::end_by_size(const std::vector<double>& shares, MixEnd end) const {
  const bool first = end == MixEnd::kFirst;
  std::vector<std::int64_t> whole(sizes_.size(), 0);  // periods before the one in which it comes to that
  std::vector<std::int64_t> left(sizes_.size(), -1);  // samples before, in that period
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (shares[i] == 0) continue;
    const std::int64_t sample = first ? sizes_[i] : sizes_[i] - 1;
    whole[i] = sample / each_[i];
    left[i] = sample % each_[i];
  }
  std::int64_t out = first ? std::numeric_limits<std::int64_t>::max() : 0;
  for (std::int64_t turn = 0; turn < period_; ++turn) {
    const std::size_t part = part_at(turn);
    const bool is_far = whole[part] > (std::numeric_limits<std::int64_t>::max() - turn) / period_;
    if (left[part]-- != 0 || is_far) continue;
    const std::int64_t at = whole[part] * period_ + turn;
    out = first ? std::min(out, at) : std::max(out, at + 1);
  }
  return out;
}

}  // namespace penstock::data
