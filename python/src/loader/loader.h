#pragma once

// penstock.DataLoader as Python has it, and the words of its options, which the feed of penstock.torch (feed.cpp) takes
// too.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "call/turns.h"
#include "data/sample/runner.h"
#include "dataset/handles.h"
#include "interpreter/typed.h"
#include "loader/kept_batch.h"
#include "penstock/loader.h"

namespace penstock::python {

/// What `stats()` gives; `workers`: processes that call functions (PyWorkers), or None.
Typed<nb::typed<nb::dict, nb::str, nb::any>> figures_of(const LoaderStats& figures, nb::handle workers);
/// A number of threads, or "auto".
Integer workers_from(nb::handle given);
/// "raise", "skip", "replace" or "mask"; kInvalidArgument for others.
OnError on_error_from(nb::handle given);
/// "pad", "drop" or "exact"; kInvalidArgument for others.
Remainder remainder_from(nb::handle given);
/// Of a Ranks of Python's, or nothing of None.
std::optional<Ranks> ranks_from(nb::handle given);
/// [(index, what it is, why)]
ListOf<TupleOf<int, nb::str, nb::str>> listed(const std::vector<SetAside>& samples);

/// A DataLoader as Python has it: waits without the GIL and answers signals, may be closed, survives a fork by refusing
/// to work in the child, and may be used from several threads, which then take batches in turn. Members need the GIL,
/// or where there is none the lock of the Python object (nb::lock_self): as the GIL, a thread gives that up while it
/// waits or runs code of Python, so that others come in between.
class PyLoader {
 public:
  /// `runner`: who calls the functions of the dataset and its collation, unless null.
  PyLoader(nb::object dataset, LoaderOptions options, nb::object parts, std::shared_ptr<Raised> raised,
           std::shared_ptr<data::Runner> runner);
  ~PyLoader();
  PyLoader(const PyLoader&) = delete;
  PyLoader& operator=(const PyLoader&) = delete;

  const LoaderOptions& options() const noexcept { return options_; }
  /// As it was given, with what it is unpickled by.
  nb::object dataset() const { return dataset_; }
  /// For the garbage collector alone: the loader is of no more use.
  void forget() noexcept {
    clear();
    dataset_.reset();
  }
  /// A dict of all arguments as they were given, and of what was made of them in Python, the worker processes among it;
  /// null when it is closed. The garbage collector has to know of it.
  const nb::object& parts() const noexcept { return parts_; }

  std::int64_t size();
  std::uint64_t epoch();
  void set_epoch(std::uint64_t epoch);
  LoaderPosition position();
  void seek(const LoaderPosition& position);
  LoaderStats stats();
  std::vector<SetAside> set_aside();
  /// Ends preparation until the next batch is asked for.
  void stop() noexcept;
  /// Ends it for good, after the trace is written where there is one. Idempotent.
  void close();
  void write_trace();

  /// Begins an iteration, which ends the one before; its number.
  std::uint64_t begin();
  /// The next batch of that iteration as Python's object, with its mask where it has one; null at the end.
  /// kInvalidArgument when another has begun.
  nb::object next(std::uint64_t iteration);
  /// Stops preparation if that iteration is still the one that runs.
  void abandon(std::uint64_t iteration) noexcept;
  /// Stops and lets go of everything that Python could see a cycle through.
  void clear() noexcept;

 private:
  /// One thread takes at a time; what is left behind owns this too.
  struct Iterations : Turns {
    /// Changed under the mutex only.
    std::atomic<std::uint64_t> iteration = 0;
    std::uint64_t ended = 0;
  };

  /// What work of this loader uses of Python's objects, to be held until that has ended: another thread may close it.
  nb::object parts_in_use() const { return parts_; }
  /// kInvalidArgument when it is closed or this is a forked child. Let go of the result without the GIL: the last one
  /// to do so waits for workers, which may wait for the GIL.
  std::shared_ptr<DataLoader> usable() const;
  /// work(loader) without the GIL, one thread at a time; rethrows what a Python sampler raised meanwhile.
  template <class Work>
  auto locked(Work work);
  /// take_next(waiting) for an iteration that neither ended nor was followed by another. The mutex must be held.
  template <class Take>
  static std::optional<Batch> take(Iterations& turns, std::uint64_t iteration, Take take_next);
  std::optional<Batch> next_prepared(std::uint64_t iteration);
  /// Of the generators that all threads share, before the first batch; null where it is not the first, or where others
  /// than functions of samples may draw meanwhile.
  nb::object states_before_first();
  /// Warns where they have drawn since.
  static void warn_of_shared_generators(const nb::object& states);
  std::optional<Batch> next_here(std::uint64_t iteration);
  std::optional<Batch> next_on_thread(std::uint64_t iteration);
  /// Keeps what a read that was left behind has given by now.
  void settle();
  std::optional<Batch> next_of(std::uint64_t iteration);
  nb::object hand_over(Batch batch, const nb::object& states);

  nb::object dataset_;
  LoaderOptions options_;
  nb::object parts_;
  std::shared_ptr<Raised> raised_;
  std::shared_ptr<DataLoader> loader_;
  const std::shared_ptr<Iterations> turns_ = std::make_shared<Iterations>();
  std::uint64_t forks_;  ///< core::forks() where its threads are
  KeptBatch kept_;       ///< of the iteration that runs
  bool is_stream_ = false;
  LoaderPosition before_;  ///< of a stream: before the batch that was taken last, which may be kept_
  bool watched_ = false;   ///< whether the first batch was looked at
  /// Whether a batch made in the caller's thread is expected to be there before anybody misses Ctrl-C.
  bool is_quick_ = false;
  /// A read that was interrupted: its thread has the turn until it ends.
  struct LeftBehind {
    std::future<std::optional<Batch>> result;
    std::uint64_t iteration = 0;
    std::shared_ptr<LoaderPosition> before;  ///< of a stream: before_, once the result is there
    bool hangs() const;
  };
  LeftBehind left_behind_;
};

/// Dataset.filter, whose processes are those of loaders.
void bind_filter();

}  // namespace penstock::python
