// Which samples are bad is found out in the worker that prepares their batch, so that the caller does not wait and the
// batches that are under way stay so. A sample is bad or good for the life of a loader: whoever meets it first tries
// it, and the others find it in the list. So what a batch holds depends on the files alone, not on the number of
// workers.
#include "data/batch/sample_policy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "core/format.h"
#include "data/batch/batch_maker.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Whether the error says something of the process rather than of a sample: what is missing now may be there later.
bool is_of_process(const Error& error) {
  static constexpr std::array kCodes = {ErrorCode::kCancelled, ErrorCode::kDeviceFailed, ErrorCode::kNoDevice,
                                        ErrorCode::kOutOfMemory, ErrorCode::kTimeout};
  static const std::array kNoDescriptors = {std::generic_category().message(EMFILE),
                                            std::generic_category().message(ENFILE)};
  return std::find(kCodes.begin(), kCodes.end(), error.code()) != kCodes.end() ||
         std::any_of(kNoDescriptors.begin(), kNoDescriptors.end(),
                     [&](const std::string& text) { return error.message().find(text) != std::string::npos; });
}

Tensor as_asked_for(std::span<const std::int64_t> wanted, std::span<const std::int64_t> chosen) {
  Tensor out = Tensor::empty(Shape{static_cast<std::int64_t>(wanted.size())}, DType::boolean);
  const auto flags = out.values<bool>();
  for (std::size_t i = 0; i < wanted.size(); ++i) flags[i] = wanted[i] == chosen[i];
  return out;
}

}  // namespace

Batch SamplePolicy::make(const Dataset& dataset, std::span<const std::int64_t> wanted, Scratch& scratch,
                         const std::function<Batch(std::span<const std::int64_t>)>& make_of) {
  if (on_error_ == OnError::kRaise) return make_of(wanted);
  while (true) {
    const std::vector<std::int64_t> samples = chosen(dataset, wanted, scratch);
    if (samples.empty() && on_error_ == OnError::kMask) throw none_left();
    if (samples.empty()) return {};
    try {
      Batch batch = make_of(samples);
      if (on_error_ == OnError::kMask) batch.valid = as_asked_for(wanted, samples);
      return batch;
    } catch (const Error& error) {
      scratch.reset();
      if (is_of_process(error)) throw;
      bool found = false;
      for (const std::int64_t index : samples) found |= is_bad(dataset, index, scratch);
      if (!found) throw;
    }
  }
}

std::vector<std::int64_t> SamplePolicy::chosen(const Dataset& dataset, std::span<const std::int64_t> wanted,
                                               Scratch& scratch) {
  std::vector<std::int64_t> out;
  for (const std::int64_t index : wanted) {
    if (!knows(index, scratch)) {
      out.push_back(index);
      continue;
    }
    if (on_error_ == OnError::kSkip) continue;
    std::int64_t other = (index + 1) % dataset.size();
    while (other != index && is_bad(dataset, other, scratch)) other = (other + 1) % dataset.size();
    if (other == index) return {};
    out.push_back(other);
  }
  return out;
}

bool SamplePolicy::knows(std::int64_t index, const Scratch& scratch) const {
  const std::scoped_lock lock(mutex_);
  return set_aside_.contains(key(index, scratch.epoch_seed.epoch));
}

bool SamplePolicy::is_bad(const Dataset& dataset, std::int64_t index, Scratch& scratch) {
  if (knows(index, scratch)) return true;
  scratch.check_cancelled();
  try {
    static_cast<void>(read_sample(dataset, index, scratch));
    scratch.reset();
    return false;
  } catch (const Error& error) {
    scratch.reset();
    if (is_of_process(error)) throw;
    const std::scoped_lock lock(mutex_);
    set_aside_.try_emplace(key(index, scratch.epoch_seed.epoch), dataset.describe(index), error.what());
    return true;
  }
}

bool SamplePolicy::set_aside(std::int64_t index, std::uint64_t epoch, std::string what, const Error& error) {
  if (on_error_ != OnError::kSkip || is_of_process(error)) return false;
  const std::scoped_lock lock(mutex_);
  set_aside_.try_emplace(key(index, epoch), std::move(what), error.what());
  return true;
}

std::vector<SetAside> SamplePolicy::listed() const {
  const std::scoped_lock lock(mutex_);
  std::vector<SetAside> out;
  for (const auto& [key, reason] : set_aside_) {
    const bool is_listed = !out.empty() && out.back().index == key.first && out.back().why == reason.second;
    if (!is_listed) out.push_back({key.first, reason.first, reason.second});
  }
  return out;
}

Error SamplePolicy::none_left() const {
  const SetAside first = listed().front();
  return {ErrorCode::kInvalidArgument,
          core::format("no sample of the epoch can be read; the first is {}: {}", first.what, first.why)};
}

}  // namespace penstock::data
