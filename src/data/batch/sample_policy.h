#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/sample/scratch.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock::data {

/// What becomes of samples that cannot be had: OnError, and the list of them. Thread-safe.
class SamplePolicy {
 public:
  /// `by_epoch`: an index may stand for another sample in another epoch.
  explicit SamplePolicy(OnError on_error, bool by_epoch = false) noexcept : on_error_(on_error), by_epoch_(by_epoch) {}

  /// The batch that `make_of` gives for these samples, or for those that stand in their place. Where it throws, each
  /// sample is tried by itself, and those that cannot be had are set aside; where there are none, the error is thrown.
  /// Without indices: a batch that is left out. `wanted` are samples of the dataset.
  Batch make(const Dataset& dataset, std::span<const std::int64_t> wanted, Scratch& scratch,
             const std::function<Batch(std::span<const std::int64_t>)>& make_of);

  /// A sample that was refused before its batch was made; whether it is set aside.
  bool set_aside(std::int64_t index, std::uint64_t epoch, std::string what, const Error& error);
  /// By index.
  std::vector<SetAside> listed() const;
  /// The error of an epoch, or with kMask of a batch, of which no sample can be had.
  Error none_left() const;

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;  ///< index and epoch
  Key key(std::int64_t index, std::uint64_t epoch) const noexcept { return {index, by_epoch_ ? epoch : 0}; }
  bool knows(std::int64_t index, const Scratch& scratch) const;
  /// Tries the sample; whether it is set aside, now or before.
  bool is_bad(const Dataset& dataset, std::int64_t index, Scratch& scratch);
  std::vector<std::int64_t> chosen(const Dataset& dataset, std::span<const std::int64_t> wanted, Scratch& scratch);

  const OnError on_error_;
  const bool by_epoch_;
  mutable std::mutex mutex_;
  std::map<Key, std::pair<std::string, std::string>> set_aside_;  ///< what it is, and why
};

}  // namespace penstock::data
