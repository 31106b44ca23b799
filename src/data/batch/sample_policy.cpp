// Which samples are bad is found out in the worker that prepares their batch, so that the caller does not wait and the
// batches that are under way stay so. One that cannot be had says so beside the others, which stay fetched; only behind
// a wrong guess about a file is the batch fetched anew. A sample is bad for the life of a loader: who meets it first
// notes it, and the others find it in the list. So what a batch holds depends on the files alone, not on the number of
// workers.
#include "data/batch/sample_policy.h"

#include <algorithm>
#include <iterator>

#include "core/format.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"
#include "penstock/error.h"

namespace penstock::data {

std::vector<std::int64_t> SamplePolicy::chosen(const Dataset& dataset, std::span<const std::int64_t> wanted,
                                               const EpochSeed& epoch) const {
  std::vector<std::int64_t> out;
  for (const std::int64_t index : wanted) {
    std::int64_t other = index;
    if (knows(index, epoch.epoch)) {
      if (on_error_ == OnError::kSkip) continue;
      do {
        other = (other + 1) % dataset.size();
      } while (other != index && knows(other, epoch.epoch));
      if (other == index) return {};
    }
    out.push_back(other);
  }
  return out;
}

SamplePolicy::Asked SamplePolicy::ask() {
  const std::scoped_lock lock(mutex_);
  return {bad_, ++batches_};
}

void SamplePolicy::settle(const Dataset& dataset, Fetched& fetched, const Work& work, const Asked& asked) {
  const auto failed = [](const Sample& sample) { return sample.failed(); };
  if (std::none_of(fetched.samples.begin(), fetched.samples.end(), failed)) return note_good(asked);
  const std::uint64_t epoch = work.call.epoch_seed.epoch;
  const auto indices = work.scratch.arena.array<std::int64_t>(fetched.size());
  const auto samples = work.scratch.arena.array<Sample>(fetched.size());
  std::size_t count = 0;
  const auto add = [&](std::int64_t index, const Sample& sample) {
    indices[count] = index;
    samples[count++] = sample;
    note_good(asked);
  };
  bool has_all = true;
  for (std::size_t i = 0; i < fetched.size() && has_all; ++i) {
    if (!failed(fetched.samples[i])) {
      add(fetched.indices[i], fetched.samples[i]);
      continue;
    }
    note_bad(fetched.indices[i], epoch, dataset, *fetched.samples[i].failure, asked);
    if (on_error_ == OnError::kSkip) continue;
    const auto other = replacement(dataset, fetched.indices[i], work, asked);
    has_all = other.has_value();
    if (other) add(other->first, other->second);
  }
  if (!has_all) count = 0;
  if (count == 0) require_no_outage();
  fetched.indices = indices.first(count);
  fetched.samples = samples.first(count);
  fetched.uniform = std::all_of(fetched.samples.begin(), fetched.samples.end(),
                                [&](const Sample& one) { return one.layout == samples[0].layout; });
}

std::optional<std::pair<std::int64_t, Sample>> SamplePolicy::replacement(const Dataset& dataset, std::int64_t index,
                                                                         const Work& work, const Asked& asked) {
  for (std::int64_t other = (index + 1) % dataset.size(); other != index; other = (other + 1) % dataset.size()) {
    if (knows(other, work.call.epoch_seed.epoch)) continue;
    require_no_outage();
    work.call.check_cancelled();
    Sample sample;
    const Asked now = {ask().behind, asked.batch};
    try {
      dataset.impl().fetch({&other, 1}, work.with(ExpectedSlots{}), {&sample, 1});
    } catch (const SampleError& error) {
      throw of_sample(error.error(), dataset, other);
    }
    if (!sample.failed()) {
      note_good(now);
      return std::pair(other, sample);
    }
    note_bad(other, work.call.epoch_seed.epoch, dataset, *sample.failure, asked);
  }
  return std::nullopt;
}

bool SamplePolicy::add(const Key& key, std::string what, std::string why) {
  const auto [added, is_new] = set_aside_.try_emplace(key, std::move(what), std::move(why));
  if (!is_new) return false;
  for (auto at = set_aside_.lower_bound({key.first, 0}); at != set_aside_.end() && at->first.first == key.first;) {
    const bool is_told = at != added && at->second.second == added->second.second;
    at = is_told ? set_aside_.erase(at) : std::next(at);
  }
  return true;
}

bool SamplePolicy::knows(std::int64_t index, std::uint64_t epoch) const {
  const std::scoped_lock lock(mutex_);
  return set_aside_.contains(key(index, epoch));
}

void SamplePolicy::note_good(const Asked& asked) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(in_a_row_, [&](const Bad& one) { return one.number <= asked.behind || one.batch == asked.batch; });
  if (outage_end_ <= asked.behind) outage_ = 0;
}

void SamplePolicy::note_bad(std::int64_t index, std::uint64_t epoch, const Dataset& dataset, const Error& error,
                            const Asked& asked) {
  std::optional<Error> named = of_sample(error, dataset, index);
  std::string what = dataset.describe(index);
  std::string why = named->what();
  // `named` outlives the lock, because the error before goes with it: to release an exception of Python takes the
  // interpreter's lock, and who holds that may be asking for `listed`.
  const std::scoped_lock lock(mutex_);
  if (!add(key(index, epoch), std::move(what), std::move(why))) return;
  in_a_row_.push_back({key(index, epoch), ++bad_, asked.batch});
  last_.swap(named);
}

void SamplePolicy::require_no_outage() {
  const std::scoped_lock lock(mutex_);
  if (!is_outage() || in_a_row_.empty()) return;
  for (const Bad& one : in_a_row_) set_aside_.erase(one.key);
  outage_ += in_a_row_.size();
  outage_end_ = bad_;
  in_a_row_.clear();
  throw outage(*last_, outage_);
}

bool SamplePolicy::set_aside(std::int64_t index, std::uint64_t epoch, std::string what, const Error& error) {
  if (on_error_ != OnError::kSkip || is_of_surroundings(error)) return false;
  const std::scoped_lock lock(mutex_);
  add(key(index, epoch), std::move(what), error.what());
  return true;
}

void SamplePolicy::know(const std::vector<SetAside>& samples) {
  const std::scoped_lock lock(mutex_);
  for (const SetAside& one : samples) add(key(one.index, 0), one.what, one.why);
}

std::vector<SetAside> SamplePolicy::listed() const {
  const std::scoped_lock lock(mutex_);
  std::vector<SetAside> out;
  // What another worker has just met in an outage is taken back in a moment.
  const auto is_kept = [&](const Key& key) {
    return !is_outage() ||
           std::none_of(in_a_row_.begin(), in_a_row_.end(), [&](const Bad& one) { return one.key == key; });
  };
  for (const auto& [key, reason] : set_aside_) {
    if (!is_kept(key)) continue;
    const bool is_listed = !out.empty() && out.back().index == key.first && out.back().why == reason.second;
    if (!is_listed) out.push_back({key.first, reason.first, reason.second});
  }
  return out;
}

Error none_left(const std::vector<SetAside>& all) {
  if (all.empty()) return {ErrorCode::kInvalidArgument, "no sample of the epoch can be read"};
  return {ErrorCode::kInvalidArgument,
          core::format("no sample of the epoch can be read; the first is {}: {}", all.front().what, all.front().why)};
}

}  // namespace penstock::data
