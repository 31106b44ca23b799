// Batches of samples of about one length. Samples are sorted into groups: buckets between boundaries, or without
// boundaries one group for each length. An epoch shuffles the samples of each group and lays the groups one behind the
// other, and is cut at the same places whatever the shuffle, so that every epoch has as many batches. A batch of a
// bucket has room for the longest of the bucket, and one of sorted lengths for the last of its own, which is always of
// the same length.
#include "data/sampler/length_buckets.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/sampler/torch_random.h"
#include "penstock/error.h"

namespace penstock {

namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

using core::refuse;

/// Which batches make a step depends on the number of ranks, so that another number cannot go on from a position: the
/// order is of another kind. The text stays valid for ever, as a kind has to.
std::string_view kind_of(std::int64_t num_replicas) {
  if (num_replicas == 1) return "length buckets";
  static std::mutex mutex;
  static std::set<std::string> kinds;
  const std::scoped_lock lock(mutex);
  return *kinds.insert(core::format("length buckets of {} ranks", num_replicas)).first;
}

void require_boundaries(const std::vector<std::int64_t>& boundaries) {
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    if (boundaries[i] < 1)
      refuse(core::format("boundary {} is {}; boundaries are lengths of 1 or more", i, boundaries[i]));
    if (i > 0 && boundaries[i] <= boundaries[i - 1]) {
      refuse(core::format("boundary {} is {} and the one before it {}; boundaries must rise", i, boundaries[i],
                          boundaries[i - 1]));
    }
  }
}

void require_options(const LengthBucketOptions& options) {
  require_boundaries(options.boundaries);
  if (options.boundaries.empty() && !options.max_tokens) {
    refuse("found neither boundaries nor max_tokens; give one of them, or both");
  }
  if (!options.max_tokens && !options.batch_size) {
    refuse("found boundaries alone; give batch_size or max_tokens, which say how many samples a batch has");
  }
  if (!options.max_tokens && options.too_long != TooLong::kRaise) {
    refuse("found too_long without max_tokens, which samples are too long for; give that too");
  }
  if (options.max_tokens && *options.max_tokens < 1) {
    refuse(core::format("max_tokens is {}; it must be 1 or more", *options.max_tokens));
  }
  if (options.batch_size && *options.batch_size < 1) {
    refuse(core::format("batch_size is {}; it must be 1 or more", *options.batch_size));
  }
  if (options.num_replicas < 1) {
    refuse(core::format("num_replicas is {}; it must be 1 or more", options.num_replicas));
  }
  if (options.rank < 0 || options.rank >= options.num_replicas) {
    refuse(core::format("rank is {}; it must be 0 or more and less than num_replicas, which is {}", options.rank,
                        options.num_replicas));
  }
}

/// Samples that an epoch may shuffle among each other, and how many.
struct Group {
  std::int64_t longest = 0;
  std::int64_t count = 0;
};

struct Cut {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class LengthBuckets final : public BatchSamplerInterface {
 public:
  /// `name` says which sample an index is.
  LengthBuckets(const std::vector<std::int64_t>& lengths, const LengthBucketOptions& options,
                const std::function<std::string(std::int64_t)>& name)
      : options_(options), kind_(kind_of(options.num_replicas)) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 0) refuse(core::format("length {} is {}; lengths are 0 or more", i, lengths[i]));
    }
    const std::vector<std::int64_t> kept = kept_samples(lengths, name);
    sort_into_groups(lengths, kept);
    cut();
  }

  std::int64_t size() const noexcept override {
    const std::int64_t count = std::ssize(cuts_);
    return count / options_.num_replicas + (!options_.drop_last && count % options_.num_replicas != 0 ? 1 : 0);
  }
  std::int64_t replicas() const noexcept override { return options_.num_replicas; }
  std::string_view kind() const noexcept override { return kind_; }

  BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const override {
    data::Generator generator(seed + epoch);
    const std::vector<std::int64_t> order = shuffled_groups(generator);
    std::vector<std::int64_t> indices;
    std::vector<std::int64_t> ends;
    for (const std::int64_t number : own_cuts(generator)) {
      const Cut& at = cuts_[static_cast<std::size_t>(number)];
      indices.insert(indices.end(), order.begin() + at.begin, order.begin() + at.end);
      ends.push_back(std::ssize(indices));
    }
    return {std::move(indices), std::move(ends)};
  }

 private:
  /// The indices of an epoch, those that are in no batch left out.
  std::vector<std::int64_t> kept_samples(const std::vector<std::int64_t>& lengths,
                                         const std::function<std::string(std::int64_t)>& name) const {
    std::vector<std::int64_t> kept;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      if (lengths[i] > options_.max_tokens.value_or(kUnlimited)) {
        if (options_.too_long == TooLong::kSkip) continue;
        if (options_.too_long == TooLong::kRaise) {
          refuse(
              core::format("{} has a length of {}, which is more than the {} tokens of a batch; raise max_tokens, "
                           "or choose with too_long whether such a sample is a batch of its own or left out",
                           name(index), lengths[i], *options_.max_tokens));
        }
      }
      kept.push_back(index);
    }
    return kept;
  }

  void sort_into_groups(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& kept) {
    std::vector<std::int64_t> bounds = options_.boundaries;  // a group ends before each
    if (bounds.empty()) {
      for (const std::int64_t index : kept) bounds.push_back(lengths[static_cast<std::size_t>(index)]);
      std::sort(bounds.begin(), bounds.end());
      bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    }
    const std::size_t alone = bounds.size() + 1;  // of samples that are longer than a batch may be
    groups_.resize(alone + 1);
    group_of_.assign(lengths.size(), kNone);
    for (const std::int64_t index : kept) {
      const std::int64_t length = lengths[static_cast<std::size_t>(index)];
      const std::size_t group =
          length > options_.max_tokens.value_or(kUnlimited)
              ? alone
              : static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), length) - bounds.begin());
      Group& of = groups_[group];
      of.longest = std::max(of.longest, length);
      ++of.count;
      group_of_[static_cast<std::size_t>(index)] = static_cast<std::uint32_t>(group);
    }
  }

  /// Samples that a batch has room for where the longest has this length.
  std::int64_t room(std::int64_t longest) const {
    const std::int64_t tokens =
        options_.max_tokens ? *options_.max_tokens / std::max<std::int64_t>(longest, 1) : kUnlimited;
    return std::max<std::int64_t>(std::min<std::int64_t>(tokens, options_.batch_size.value_or(kUnlimited)), 1);
  }

  void cut() {
    if (options_.boundaries.empty()) return cut_sorted();
    std::int64_t begin = 0;
    for (const Group& group : groups_) {
      const std::int64_t end = begin + group.count;
      const std::int64_t most = room(group.longest);
      while (begin < end) {
        const std::int64_t count = std::min(most, end - begin);
        if (count == most || !options_.drop_last) cuts_.push_back({begin, begin + count});
        begin += count;
      }
    }
  }

  /// A batch grows while it has room for the longest so far, which is the last one.
  void cut_sorted() {
    Cut at;
    for (const Group& group : groups_) {
      for (std::int64_t i = 0; i < group.count; ++i) {
        if (at.end - at.begin >= room(group.longest)) cuts_.push_back(std::exchange(at, {at.end, at.end}));
        ++at.end;
      }
    }
    if (at.end > at.begin) cuts_.push_back(at);
  }

  /// All samples, group behind group.
  std::vector<std::int64_t> shuffled_groups(data::Generator& generator) const {
    std::vector<std::int64_t> shuffle(group_of_.size());
    std::iota(shuffle.begin(), shuffle.end(), std::int64_t{0});
    if (options_.shuffle) data::randperm(std::span(shuffle), generator);
    std::vector<std::int64_t> next;  // where the next sample of each group goes
    std::int64_t begin = 0;
    for (const Group& group : groups_) next.push_back(std::exchange(begin, begin + group.count));
    std::vector<std::int64_t> out(static_cast<std::size_t>(begin));
    for (const std::int64_t index : shuffle) {
      const std::uint32_t group = group_of_[static_cast<std::size_t>(index)];
      if (group != kNone) out[static_cast<std::size_t>(next[group]++)] = index;
    }
    return out;
  }

  /// The batches of this rank. Each n that follow each other in length are dealt out to the ranks in one step; where
  /// that begins is drawn too, so that it is not always the longest that are left out or come twice.
  std::vector<std::int64_t> own_cuts(data::Generator& generator) const {
    const std::int64_t count = std::ssize(cuts_);
    std::vector<std::int64_t> steps(static_cast<std::size_t>(size()));
    std::iota(steps.begin(), steps.end(), std::int64_t{0});
    std::int64_t first = 0;
    if (options_.shuffle && count > 0) {
      data::randperm(std::span(steps), generator);
      data::randint(count, std::span(&first, 1), generator);
    }
    for (std::int64_t& step : steps) step = (first + step * options_.num_replicas + options_.rank) % count;
    return steps;
  }

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  LengthBucketOptions options_;
  std::string_view kind_;
  std::vector<Group> groups_;            ///< by length
  std::vector<std::uint32_t> group_of_;  ///< of each sample; kNone: it is in no batch
  std::vector<Cut> cuts_;                ///< the batches of all ranks, by length
};

}  // namespace

BatchSampler data::length_buckets(const std::vector<std::int64_t>& lengths, const LengthBucketOptions& options,
                                  const std::function<std::string(std::int64_t)>& name) {
  require_options(options);
  return LengthBuckets(lengths, options, name);
}

BatchSampler sampler::length_buckets(const std::vector<std::int64_t>& lengths, const LengthBucketOptions& options) {
  return data::length_buckets(lengths, options, [](std::int64_t i) { return core::format("sample {}", i); });
}

BatchSampler sampler::length_buckets(const Dataset& dataset, const LengthBucketOptions& options) {
  require_options(options);  // before any file is opened
  return data::length_buckets(lengths(dataset, options.lengths), options, [&](std::int64_t i) {
    return core::format("sample {} ({})", i, core::escaped(dataset.describe(i)));
  });
}

}  // namespace penstock
