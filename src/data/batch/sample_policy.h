#pragma once

// Samples that cannot be had: who notes them, and what a batch has in their place.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/collate/batch_plan.h"
#include "data/sample/blame.h"
#include "data/sample/work.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock::data {

/// The error of an epoch, or with kMask of a batch, of which no sample can be had; `all` are set aside.
Error none_left(const std::vector<SetAside>& all);

/// What becomes of samples that cannot be had: OnError, and the list of them. Thread-safe.
class SamplePolicy {
 public:
  /// `by_epoch`: an index may stand for another sample in another epoch, as random steps make it.
  explicit SamplePolicy(OnError on_error, bool by_epoch = false) noexcept : on_error_(on_error), by_epoch_(by_epoch) {}

  OnError on_error() const noexcept { return on_error_; }
  /// Whether samples are set aside at all.
  bool is_lenient() const noexcept { return on_error_ != OnError::kRaise; }

  /// When the samples of a batch were asked for: behind how many bad ones.
  struct Asked {
    std::uint64_t behind = 0;
    std::uint64_t batch = 0;
  };
  /// For a batch whose samples are fetched now.
  Asked ask();
  /// The samples that a batch of `wanted` begins with: without those that are set aside, or with others in their place.
  /// Empty where there are none. None of them is tried.
  std::vector<std::int64_t> chosen(const Dataset& dataset, std::span<const std::int64_t> wanted,
                                   const EpochSeed& epoch) const;
  /// Sets the samples of a batch aside that cannot be had (Sample::failed), and takes them out of it, or puts the next
  /// good ones in their place, which it fetches; those that can be had stay as they are. `fetched` is empty then where
  /// there are none. Throws the last error where more than kMostInARow samples in a row cannot be had and the batch has
  /// no other, and then keeps none of these aside. What points to indices and samples lives as long as the scratch is
  /// not reset.
  void settle(const Dataset& dataset, Fetched& fetched, const Work& work, const Asked& asked);

  /// Samples that another loader set aside are so here.
  void know(const std::vector<SetAside>& samples);
  /// A sample that was refused before its batch was made; whether it is set aside.
  bool set_aside(std::int64_t index, std::uint64_t epoch, std::string what, const Error& error);
  /// By index.
  std::vector<SetAside> listed() const;

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;  ///< index and epoch
  Key key(std::int64_t index, std::uint64_t epoch) const noexcept { return {index, by_epoch_ ? epoch : 0}; }
  /// One that could not be had, the `number`-th of all.
  struct Bad {
    Key key;
    std::uint64_t number = 0;
    std::uint64_t batch = 0;
  };
  /// False where it is set aside already. What another epoch says alike of the same index is forgotten, or the list
  /// would grow from epoch to epoch. Call it with mutex_ locked.
  bool add(const Key& key, std::string what, std::string why);
  bool knows(std::int64_t index, std::uint64_t epoch) const;
  /// Ends the row of those that were noted before it was asked for, and of those of its own batch. Others, which
  /// another worker met meanwhile, may be the first of an outage.
  void note_good(const Asked& asked);
  void note_bad(std::int64_t index, std::uint64_t epoch, const Dataset& dataset, const Error& error,
                const Asked& asked);
  bool is_outage() const noexcept { return outage_ + in_a_row_.size() > kMostInARow; }
  /// Throws where too many in a row cannot be had.
  void require_no_outage();
  std::optional<std::pair<std::int64_t, Sample>> replacement(const Dataset& dataset, std::int64_t index,
                                                             const Work& work, const Asked& asked);

  const OnError on_error_;
  const bool by_epoch_;
  mutable std::mutex mutex_;
  std::map<Key, std::pair<std::string, std::string>> set_aside_;  ///< what it is, and why
  std::vector<Bad> in_a_row_;                                     ///< the latest, since one could be had
  std::size_t outage_ = 0;                                        ///< samples before them that were not set aside
  std::uint64_t outage_end_ = 0;                                  ///< how many were bad by then
  std::uint64_t bad_ = 0;
  std::uint64_t batches_ = 0;
  std::optional<Error> last_;  ///< of in_a_row_
};

}  // namespace penstock::data
