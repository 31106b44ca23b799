#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/collate.h"
#include "penstock/dataset.h"
#include "penstock/device.h"
#include "penstock/sampler.h"
#include "penstock/value.h"

namespace penstock {

namespace detail {
class LoaderState;
}

/// Some samples together. A value handle; its memory returns to the loader's pool with the last tensor that uses it.
struct Batch {
  /// The samples' structure, each leaf collated: a tensor, a dict or tuple of tensors, lists for strings.
  Value value;
  /// Which samples, in order.
  std::vector<std::int64_t> indices;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(indices.size()); }
  /// The batch when it is one tensor; kDTypeMismatch names what it is otherwise.
  const Tensor& tensor() const& { return value.as_tensor(); }
  Tensor tensor() const&& { return value.as_tensor(); }
  /// Tensor `i` of a tuple, or under `key` of a dict.
  Tensor operator[](std::size_t i) const { return value[i].as_tensor(); }
  Tensor operator[](int i) const { return value[i].as_tensor(); }
  Tensor operator[](std::string_view key) const { return value[key].as_tensor(); }
  Tensor operator[](const char* key) const { return value[key].as_tensor(); }
};

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;
  /// Excludes shuffle.
  SamplerPtr sampler = {};
  /// Excludes batch_size, shuffle, sampler and drop_last.
  BatchSamplerPtr batch_sampler = {};
  /// Threads that prepare batches ahead, up to kMostWorkers; 0: the caller's thread, when it asks. kAutoWorkers: one
  /// for each processor that this process may use, up to 16, and up to 64 while they wait for storage and more of them
  /// bring more, which is measured as batches are taken; LoaderStats::workers tells the number.
  std::size_t num_workers = kAutoWorkers;
  static constexpr std::size_t kAutoWorkers = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kMostWorkers = 4096;
  Collate collate = stack();
  bool drop_last = false;
  /// Batches ahead for each worker, 1 to 2^20.
  std::size_t prefetch_factor = 2;
  std::uint64_t seed = 0;
  /// Bytes of finished and started batches that the caller has not taken; one batch is always let through.
  std::uint64_t memory_budget = std::uint64_t{1} << 30;
  /// Seconds that `next` waits for a batch before kTimeout; 0: for ever.
  double timeout = 0;
  Device device = {};
  bool verify_checksums = true;
  /// Where to write what each thread did and when: a Chrome trace, which Perfetto (ui.perfetto.dev) and
  /// chrome://tracing open. Empty: nowhere, at the cost of one branch. The first million events are kept (32 bytes
  /// each), the rest are counted. Written by DataLoader::write_trace, and by the destructor, which tells no failure.
  std::string trace = {};
};

/// Where an iteration stands: enough to go on exactly, under any number of workers, and of ranks where what all of them
/// have taken are whole batches of theirs. Plain data; text form is JSON.
struct LoaderPosition {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::int64_t batch = 0;    ///< batches of this epoch handed out
  std::int64_t samples = 0;  ///< size of the dataset, to refuse another one's state
  /// What `batch` counts in, to refuse a loader of other batches; 0 with a batch_sampler, and where a state has none.
  std::int64_t batch_size = 0;
  std::int64_t num_replicas = 1;  ///< ranks, each of which has taken `batch` batches
  /// Sampler::kind of what decides the order, to refuse a loader with another; empty where a state has none.
  std::string order = {};

  std::string to_json() const;
  /// kInvalidArgument names the field that is missing or wrong.
  static LoaderPosition from_json(std::string_view json);
};

/// What the loader did since it was made, and what that says. Seconds of workers add up over all of them, those of
/// stages without the batch that is being made; without workers the caller is one.
struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t payload_bytes = 0;  ///< bytes placed in batches
  std::uint64_t read_bytes = 0;     ///< bytes asked of files
  std::uint64_t files_opened = 0;
  std::uint64_t files_parsed = 0;  ///< opened files whose layout was not that of the one before

  double open_seconds = 0;     ///< opening files; of large ones also reading and parsing their headers
  double read_seconds = 0;     ///< bytes of files
  double decode_seconds = 0;   ///< recognising or parsing headers, checksums, unpacking
  double collate_seconds = 0;  ///< deciding what the batch is, and taking its memory
  double copy_seconds = 0;     ///< payload into the batch; pages of mapped files come in by it
  double send_seconds = 0;     ///< starting copies to the device
  double compute_seconds = 0;  ///< processor time of workers in all these stages
  double stall_seconds = 0;    ///< workers ready to run while no processor was free; 0 where the kernel does not tell
  double budget_seconds = 0;   ///< workers waiting for memory_budget

  double wait_seconds = 0;          ///< the caller waiting in `next`
  double caller_seconds = 0;        ///< the caller between one batch and asking for the next
  double caller_stall_seconds = 0;  ///< of both: the caller ready to run while no processor was free
  double worker_capacity = 0;       ///< seconds that the workers had while the caller iterated
  double process_seconds = 0;       ///< processor time of the whole process meanwhile
  double first_batch_seconds = 0;   ///< from the start of the iteration to its first batch
  std::uint64_t buffers_allocated = 0;

  /// Threads that prepare batches, as of now, and how that number came about.
  std::uint64_t workers = 0;
  std::uint64_t processors = 0;  ///< that this process may use
  enum class Choice : std::uint8_t {
    kAsked,      ///< a number was asked for
    kUndecided,  ///< one for each processor; too few batches to judge by
    kCaller,     ///< the caller does not wait, so more would bring nothing
    kComputing,  ///< they compute more than they wait, so more would share the same processors
    kNoGain,     ///< `workers_tried` were tried and were no faster
    kGain,       ///< each mostly waits, and more of them brought more
    kMost,       ///< as many as there may be
  };
  Choice choice = Choice::kAsked;
  std::uint64_t workers_tried = 0;  ///< in the last trial, or 0
  double trial_gain = 0;            ///< speed in it over the speed before

  /// Seconds of the workers in stages.
  double worked_seconds() const noexcept {
    return open_seconds + read_seconds + decode_seconds + collate_seconds + copy_seconds + send_seconds;
  }
  /// What the iteration cannot be faster than: "caller", a stage ("open", "read", "decode", "collate", "copy", "send"),
  /// "processors", "memory budget", "hand-over", or "nothing" before the first batch.
  std::string_view bottleneck() const noexcept;
  /// The same as one sentence with figures.
  std::string limit() const;
  /// The number of workers and why, as one sentence.
  std::string workers_because() const;
  /// All of it, for people: some lines, the last of them limit(), without newline.
  std::string to_string() const;
};

/// Iterates over a dataset in batches, prepared ahead by `num_workers` threads. Batches come in order and are the same
/// bit by bit whatever the number of workers. One thread iterates; `stop` and `stats` may be called from any. Moving is
/// allowed, copying is not; moved from, a loader may only be destroyed or assigned to. The destructor stops: it waits
/// for the file operations that the workers are in, for five seconds at most. One that hangs longer, as on a network
/// storage that is gone, is left behind: it goes on with the dataset's and the batch's memory, which go when it ends.
/// In a forked child, where its threads are not, a loader of the parent's refuses to go on (kInvalidArgument) and its
/// destructor keeps its memory.
class DataLoader {
 public:
  /// kInvalidArgument for options that exclude each other or are out of range. For a trace that cannot be written the
  /// errors of `save`.
  DataLoader(Dataset dataset, LoaderOptions options);
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();

  /// Batches in an epoch.
  std::int64_t size() const;

  /// The next batch, or nothing at the end of the epoch; the call after that begins the next epoch. An error belongs to
  /// one batch: its message names sample and file, and the call after it goes on with the batch behind.
  /// kTimeout after options.timeout; kCancelled when stopped from another thread.
  std::optional<Batch> next();
  /// As next, but waits at most `seconds`; `timed_out` tells an empty result from the end of the epoch.
  std::optional<Batch> next_for(double seconds, bool& timed_out);

  /// Begins epoch `epoch` from its first batch, dropping what was prepared.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const noexcept;
  /// Begins the current epoch again, unless it stands at its beginning or at a position just loaded.
  void restart();

  /// The position after the last batch handed out; and going on from one. kInvalidArgument for another dataset's.
  LoaderPosition position() const;
  void seek(const LoaderPosition& position);

  LoaderStats stats() const;
  /// Writes the trace so far in place of what options.trace names, whole or not at all; the errors of `save`.
  /// kInvalidArgument when none was asked for. From any one thread at a time.
  void write_trace() const;
  /// Ends preparation; `next` begins anew. From any thread; a waiting `next` returns kCancelled.
  void stop() noexcept;

  /// Input iterator over one epoch: `for (Batch& batch : loader)`. begin() is restart() and next().
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = Batch*;
    using reference = Batch&;

    Batch& operator*() const noexcept { return *batch_; }
    Batch* operator->() const noexcept { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept { return !it.batch_; }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader* loader) : loader_(loader), batch_(loader->next()) {}
    DataLoader* loader_;
    mutable std::optional<Batch> batch_;  ///< a single-pass iterator hands out what it holds, const or not
  };
  Iterator begin() {
    restart();
    return Iterator(this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  detail::LoaderState& usable() const;

  std::unique_ptr<detail::LoaderState> state_;
};

}  // namespace penstock
