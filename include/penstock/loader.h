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
  const Tensor& tensor() const { return value.as_tensor(); }
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
  /// Threads that prepare batches ahead; 0: the caller's thread, when it asks. kAutoWorkers: one for each processor
  /// that this process may use, up to 16, and up to 64 while they wait for storage and more of them bring more, which
  /// is measured as batches are taken; LoaderStats::workers tells the number.
  std::size_t num_workers = kAutoWorkers;
  static constexpr std::size_t kAutoWorkers = std::numeric_limits<std::size_t>::max();
  Collate collate = stack();
  bool drop_last = false;
  /// Batches ahead for each worker, >= 1.
  std::size_t prefetch_factor = 2;
  std::uint64_t seed = 0;
  /// Bytes of finished and started batches that the caller has not taken; one batch is always let through.
  std::uint64_t memory_budget = std::uint64_t{1} << 30;
  /// Seconds that `next` waits for a batch before kTimeout; 0: for ever.
  double timeout = 0;
  Device device = {};
  bool verify_checksums = true;
};

/// Where an iteration stands: enough to go on exactly, under any number of workers. Plain data; text form is JSON.
struct LoaderPosition {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::int64_t batch = 0;    ///< batches of this epoch handed out
  std::int64_t samples = 0;  ///< size of the dataset, to refuse another one's state

  std::string to_json() const;
  /// kInvalidArgument names the field that is missing or wrong.
  static LoaderPosition from_json(std::string_view json);
};

/// What the loader did since it was made. Seconds add up over workers, but for `wait`.
struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t payload_bytes = 0;  ///< bytes placed in batches
  std::uint64_t read_bytes = 0;     ///< bytes asked of files
  std::uint64_t files_opened = 0;
  std::uint64_t files_parsed = 0;  ///< opened files whose layout was not that of the one before
  double locate_seconds = 0;       ///< opening files, reading and parsing headers
  double move_seconds = 0;         ///< payload into the batch
  double wait_seconds = 0;         ///< the caller waiting in `next`
  double first_batch_seconds = 0;  ///< from the start of the iteration to its first batch
  std::uint64_t buffers_allocated = 0;
  std::uint64_t workers = 0;  ///< threads that prepare batches, as of now
};

/// Iterates over a dataset in batches, prepared ahead by `num_workers` threads. Batches come in order and are the same
/// bit by bit whatever the number of workers. One thread iterates; `stop` and `stats` may be called from any. Moving is
/// allowed, copying is not. The destructor stops: it waits for no more than the file operation each worker is in.
class DataLoader {
 public:
  /// kInvalidArgument for options that exclude each other or are out of range.
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

    Batch& operator*() noexcept { return *batch_; }
    Batch* operator->() noexcept { return &*batch_; }
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
    std::optional<Batch> batch_;
  };
  Iterator begin() {
    restart();
    return Iterator(this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  std::unique_ptr<detail::LoaderState> state_;
};

}  // namespace penstock
