#pragma once

/// Batches of a dataset, prepared ahead by threads: the loop of a training program is `for (Batch& batch : loader)`.
/// Start at DataLoader and LoaderOptions. LoaderStats says what limits the speed, LoaderPosition saves where an
/// iteration stands.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/collate.h"
#include "penstock/dataset.h"
#include "penstock/device.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/ranks.h"
#include "penstock/report.h"
#include "penstock/sampler.h"
#include "penstock/text_view.h"
#include "penstock/value.h"

namespace penstock {

class SampleStream;

namespace detail {
class LoaderState;
}

/// Some samples together. A value handle. Its memory returns to the loader's pool when the last tensor that uses it
/// goes.
struct Batch {
  Batch() = default;
  Batch(Value content, std::vector<std::int64_t> samples, Tensor good = {})
      : value(std::move(content)), indices(std::move(samples)), valid(std::move(good)) {}
  Batch(const Batch&) = default;
  Batch(Batch&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Batch& operator=(const Batch&) & = default;
  Batch& operator=(Batch&&) & noexcept = default;
  ~Batch() = default;

  /// The samples' structure, each leaf collated: a tensor, a dict or tuple of tensors, lists for strings.
  Value value;
  /// Which samples, in order: those that were read, where OnError put others in the place of bad ones.
  std::vector<std::int64_t> indices;
  /// With OnError::kMask or Remainder::kExact: bool of shape (batch,), in host memory. False for a sample that stands
  /// in the place of a bad one, or that is repeated to give all ranks as many. Else undefined.
  Tensor valid = {};

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(indices.size()); }
  /// The batch when it is one tensor; kDTypeMismatch names what it is otherwise, and how to get at its parts.
  const Tensor& tensor() const&;
  Tensor tensor() const&& { return tensor(); }
  /// Tensor `i` of a tuple, or under `key` of a dict.
  template <detail::IndexLike T>
  Tensor operator[](T i) const {
    return value[i].as_tensor();
  }
  Tensor operator[](TextView key) const { return value[key].as_tensor(); }
};

/// What a loader does about a sample that cannot be read, or whose function of `map` throws. It tries such a sample
/// once in its life, and DataLoader::set_aside lists it from then on; the samples beside it are not read again for
/// that. What is wrong with a whole batch (samples that do not go together, a function of batches that throws), with
/// the process (no memory left, the loader stopped) or with the store (expired keys, a server that does not answer) is
/// thrown with any of them. So is the error of more than a hundred samples one after another, which is taken for an
/// outage: these are not set aside.
enum class OnError : std::uint8_t {
  kRaise,    ///< `next` throws; the call after it goes on with the next batch
  kSkip,     ///< the batch has one sample less; a batch without any is left out
  kReplace,  ///< the next good sample of the dataset, by index, stands in its place
  kMask,  ///< as kReplace, and Batch::valid tells; a batch of which none is good is an error, so that all are counted
};

/// A sample that a loader has set aside: what it is (its file), and what was wrong with it.
struct SetAside {
  std::int64_t index = 0;
  std::string what;
  std::string why;
};

struct LoaderOptions {
  Integer batch_size = 1;
  Flag shuffle = false;
  /// Decides the order. Excludes shuffle.
  std::optional<Sampler> sampler = {};
  /// Decides the batches. Excludes batch_size, shuffle, sampler and drop_last.
  std::optional<BatchSampler> batch_sampler = {};
  /// Threads that prepare batches ahead, up to kMostWorkers. 0: the caller's thread prepares each batch when it asks
  /// for it. kAutoWorkers: one for each processor that this process may use, up to 16. While they wait for storage,
  /// more are tried, up to 64, and kept when batches come faster; LoaderStats::workers tells the number.
  Integer num_workers = kAutoWorkers;
  static constexpr std::int64_t kAutoWorkers = -1;
  static constexpr std::int64_t kMostWorkers = 4096;
  Collate collate = collate::stack();
  Flag drop_last = false;
  /// Batches that each worker prepares ahead, 1 to 2^20.
  Integer prefetch_factor = 2;
  std::uint64_t seed = 0;
  /// Bytes of finished and started batches that the caller has not taken. One batch is always allowed, however large.
  std::uint64_t memory_budget = std::uint64_t{1} << 30;
  /// Seconds that `next` waits for a batch before kTimeout; 0: for ever. Wants workers.
  double timeout = 0;
  Device device = {};
  Flag verify = true;
  OnError on_error = OnError::kRaise;
  /// Deals the order out: rank r of n takes its positions r, r + n, ..., in batches of `batch_size`; of a
  /// `batch_sampler` batches r, r + n, .... All ranks need the same dataset, seed and options, and take the same number
  /// of steps. Excludes samplers that deal their order out themselves, and with several ranks OnError::kSkip, which may
  /// leave a batch out on one rank alone. Unset: this loader has all of the order.
  std::optional<Ranks> ranks = {};
  /// What becomes of the last samples (or batches) where `ranks` cannot be given as many each.
  Remainder remainder = Remainder::kPad;
  /// A file for what each thread did and when: a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing
  /// open. Empty: none, which costs one branch. The first million events are kept (32 bytes each), the rest are
  /// counted. DataLoader::write_trace writes it; so does the destructor, which cannot report a failure.
  std::string trace = {};
  /// Setting it stops the loader for good: a waiting `next`, and each one after it, throws kCancelled.
  std::stop_token stop = {};
};

/// Where an iteration stands. It is enough to go on exactly, with any number of workers. It is the same on all ranks,
/// and counts in the order that they share, so that another number of ranks goes on from it too: with the same
/// batch_size when the batches taken so far divide evenly among them, and at any batch when batch_size times ranks
/// stays the same. Plain data; the text form is JSON.
struct LoaderPosition {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::int64_t batch = 0;    ///< batches of this epoch that were taken
  std::int64_t samples = 0;  ///< in the whole dataset; a loader refuses the position of a dataset of another size
  /// The unit that `batch` counts in; another is refused, except as said above. 0 with a batch_sampler, and in
  /// positions of older releases.
  std::int64_t batch_size = 0;
  std::int64_t num_replicas = 1;  ///< ranks, each of which has taken `batch` batches
  std::int64_t batches = 0;       ///< in a whole epoch, for each rank; 0 in positions of older releases
  /// Sampler::kind of what decides the order ("stream" of a SampleStream); a loader refuses the position of one with
  /// another kind. Empty in positions of older releases.
  std::string order = {};
  /// For a SampleStream: how many samples its sources had been asked for by then. `samples` and `batches` are 0 then.
  std::int64_t read = 0;
  /// Of `read` the last ones, which come with later batches: an error of the source came between.
  std::int64_t held = 0;
  /// What the samples are, by the names of some: a loader refuses the position of another dataset of equal size.
  /// Folders above the last one are left out, so that a dataset may be moved. Empty where nobody told, which fits any.
  std::string dataset = {};
  /// A checksum of the indices that all ranks of the loader took, or with the rank of what this one did, where the
  /// order does not follow from sizes, seed and epoch alone: a loader refuses to go on where its sampler gives others.
  /// Empty where nobody told.
  std::string indices = {};

  std::string to_json() const;
  /// kInvalidArgument names the field that is missing or wrong.
  static LoaderPosition from_json(TextView json);
};

/// What the loader did since it was made, and what limits it. Seconds of workers are added up over all workers; a batch
/// counts when it is finished. Without workers, the caller counts as one.
struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t payload_bytes = 0;  ///< bytes placed in batches
  std::uint64_t read_bytes = 0;     ///< bytes asked of files
  std::uint64_t files_opened = 0;
  std::uint64_t files_parsed = 0;  ///< opened files whose layout the loader did not know

  double open_seconds = 0;      ///< opening files; for large ones also reading and parsing their headers
  double read_seconds = 0;      ///< bytes of files
  double decode_seconds = 0;    ///< recognising or parsing headers, checksums, unpacking
  double function_seconds = 0;  ///< functions of the program: map, dataset, collate::function
  double collate_seconds = 0;   ///< deciding how the batch is laid out, and taking its memory
  double copy_seconds = 0;      ///< copying payload into the batch, page faults of mapped files included
  double send_seconds = 0;      ///< starting copies to the device
  double compute_seconds = 0;   ///< processor time of workers in all these stages
  double stall_seconds = 0;     ///< workers ready to run while no processor was free; 0 where the kernel does not tell
  double budget_seconds = 0;    ///< workers waiting for memory_budget

  double wait_seconds = 0;          ///< the caller waiting in `next`
  double caller_seconds = 0;        ///< the caller between one batch and asking for the next
  double caller_stall_seconds = 0;  ///< of both: the caller ready to run while no processor was free
  double worker_capacity = 0;       ///< seconds that the workers had while the caller iterated
  double process_seconds = 0;       ///< processor time of the whole process meanwhile
  double first_batch_seconds = 0;   ///< from the start of the iteration to its first batch
  std::uint64_t buffers_allocated = 0;
  RemoteTraffic remote = {};  ///< of samples that are read by URL

  /// Threads that prepare batches now, and why so many.
  std::uint64_t workers = 0;
  std::uint64_t processors = 0;  ///< that this process may use
  enum class Choice : std::uint8_t {
    kAsked,      ///< a number was asked for
    kUndecided,  ///< one for each processor; too few batches to judge by
    kCaller,     ///< the caller does not wait, so more would not help
    kComputing,  ///< they compute more than they wait, so more would share the same processors
    kNoGain,     ///< `workers_tried` were tried and were no faster
    kGain,       ///< each mostly waits, and more of them were faster
    kMost,       ///< as many as there may be
  };
  Choice choice = Choice::kAsked;
  std::uint64_t workers_tried = 0;  ///< in the last trial, or 0
  double trial_gain = 0;            ///< speed in it over the speed before

  /// Seconds that the workers spent in stages.
  double worked_seconds() const noexcept {
    return open_seconds + read_seconds + decode_seconds + function_seconds + collate_seconds + copy_seconds +
           send_seconds;
  }
  /// What limits the iteration: "caller", a stage ("open", "read", "decode", "function", "collate", "copy",
  /// "send"), "processors", "memory budget", "hand-over", or "nothing" before the first batch. Where files are read by
  /// URL and "open" or "read" is the limit, remote.limit() says what limits that.
  const std::string_view bottleneck() const noexcept;
  /// The same as one sentence with figures.
  const std::string limit() const;
  /// The number of workers and why, as one sentence.
  const std::string workers_because() const;
  /// All of it for people: some lines, of which limit() is the last, without a newline at the end.
  std::string to_string() const;
};

/// A batch, or why there is none: the epoch has ended, or the time was up.
struct TimedBatch {
  std::optional<Batch> batch;
  bool timed_out = false;  ///< the time was up; false without a batch: the epoch has ended
};

/// Iterates over a dataset in batches, which `num_workers` threads prepare ahead. Batches come in order, and are the
/// same bit by bit for any number of workers. Threads may call `next` and `next_for` at once: they take turns, each
/// batch goes to one of them, and the end of the epoch to each that asked for a batch of it; one that had none of it
/// begins the next epoch. Functions that the loader calls may not (kInvalidArgument), because they would wait for
/// themselves. `stop`, `stats` and `set_aside` may be called from any thread; the other members not while a thread is
/// in `next`. Moving is allowed, copying is not; a loader that was moved from, or made without a dataset, refuses
/// everything but assignment (kInvalidArgument). The destructor waits for the file operations that workers are in, for
/// five seconds at most. A worker that hangs longer, as on network storage that is gone, is left behind: it keeps the
/// memory of the dataset and its batch until it ends. A forked child does not have the threads of its parent's loader:
/// there the loader refuses to go on (kInvalidArgument), and its destructor frees nothing.
class DataLoader {
 public:
  /// kInvalidArgument for options that exclude each other or are out of range. The errors of `save` for a trace that
  /// cannot be written.
  DataLoader(Dataset dataset, LoaderOptions options);
  explicit DataLoader(Dataset dataset) : DataLoader(std::move(dataset), LoaderOptions()) {}
  /// Batches of a stream (sample_stream.h), whose indices are the numbers of the samples. An epoch ends with the
  /// stream. All ranks read all of it, and rank r of n takes samples r, r + n, ...; where the last ones do not suffice
  /// for all, LoaderOptions::remainder has its say. Of OnError, a stream has kRaise, and kSkip for what functions of
  /// samples throw; what the source itself throws is thrown with both. Samples that were read for batches under way
  /// come on top of memory_budget. kInvalidArgument for options that a stream cannot heed: shuffle, samplers, kReplace
  /// and kMask; and when an epoch begins, for a stream that was read before and cannot begin again.
  DataLoader(SampleStream stream, LoaderOptions options);
  /// A place for a loader, which is assigned later.
  DataLoader() noexcept;
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) & noexcept;
  ~DataLoader();

  /// Batches in an epoch. kInvalidArgument for a stream, of which nobody knows.
  std::int64_t size() const;

  /// The next batch, or nothing at the end of the epoch; the call after that begins the next epoch. An error belongs to
  /// one batch: its message names sample and file, and the next call goes on with the batch after it; samples of a
  /// stream that were read before its source threw come with that one. kInvalidArgument once, and then the end, where
  /// OnError left out every batch of the epoch. kChanged where the sampler gives other indices than those that were
  /// taken before the position that `seek` set. kTimeout after options.timeout; kCancelled when stopped from another
  /// thread.
  std::optional<Batch> next();
  /// As next, but waits at most `seconds`. kInvalidArgument unless seconds >= 0.
  TimedBatch next_for(double seconds);

  /// Begins epoch `epoch` at its first batch; batches that were prepared are dropped.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const noexcept;
  /// Begins the current epoch again, unless it is at its beginning or at a position that `seek` just set.
  void restart();

  /// The position after the last batch that `next` gave. `seek` goes on from a position; kInvalidArgument for one of
  /// another dataset or of other batches.
  const LoaderPosition position() const;
  void seek(const LoaderPosition& position);

  const LoaderStats stats() const;
  /// The samples that options.on_error left out so far, by index. Any thread may call it. A loader that goes on from a
  /// position of another has a list of its own, and tries each again.
  const std::vector<SetAside> set_aside() const;
  /// Writes the trace so far to options.trace, whole or not at all, and replaces what is there. The errors of `save`.
  /// kInvalidArgument without options.trace. Any thread may call it, one at a time.
  void write_trace() const;
  /// Stops the workers; each waiting `next` throws kCancelled, and a later `next` starts them again. Any thread may
  /// call it.
  void stop() noexcept;

  /// Input iterator over one epoch: `for (Batch& batch : loader)`. begin() is restart(). A batch is taken by next()
  /// when it is looked at or compared with the end, so that `loader | std::views::take(2)` takes two and no third one;
  /// what next() throws comes from there, and who looks again gets the batch behind the error.
  /// From begin(), seek(), set_epoch() and restart() on, iterators of before are kInvalidArgument: a loader has one
  /// iteration.
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using pointer = Batch*;
    using reference = Batch&;

    Batch& operator*() const& { return *operator->(); }
    const Batch operator*() const&& { return *operator->(); }
    Batch* operator->() const& {
      look();
      return &*batch_;
    }
    Batch* operator->() const&& = delete;
    Iterator& operator++() {
      look();
      batch_.reset();
      is_due_ = true;
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) {
      it.look();
      return !it.batch_;
    }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader* loader) : loader_(loader), iteration_(loader->begin_iteration()) {}
    void look() const {
      if (is_due_) batch_ = loader_->next_of(iteration_);
      is_due_ = false;
    }
    DataLoader* loader_;
    std::uint64_t iteration_;
    // A single-pass iterator hands out what it holds, const or not.
    mutable bool is_due_ = true;
    mutable std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  /// restart(), and the number of the iteration that begins.
  std::uint64_t begin_iteration();
  std::optional<Batch> next_of(std::uint64_t iteration);
  detail::LoaderState& known() const;
  detail::LoaderState& usable() const;

  std::unique_ptr<detail::LoaderState> state_;
};

}  // namespace penstock

/// Nobody knows how many batches a stream has.
template <>
inline constexpr bool std::ranges::disable_sized_range<penstock::DataLoader> = true;
