#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "data/sample/scratch.h"
#include "data/stream/node.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock::data {

/// The samples of one batch, or why there are none.
struct StreamBatch {
  std::vector<StreamItemPtr> items;  ///< none: the epoch has ended
  bool padded = false;               ///< the last of them repeats one, and does not count (Remainder::kExact)
  std::int64_t read = 0;             ///< samples asked of the sources by then
  std::optional<Error> error;
};

/// One epoch of a stream, cut into batches, for workers that ask for them by number in about their order. Whoever asks
/// first reads as far as is needed; the others find theirs. A batch stays until `forget`, so that it can be made again.
/// Thread-safe.
class StreamFeed {
 public:
  struct Place {
    EpochSeed seed;
    std::int64_t batch = 0;
    std::int64_t read = -1;  ///< that StreamBatch::read has to be before that batch; -1: whatever it is
  };
  /// What becomes of a sample that a function refused before the batch was made; false: it is an error of the batch.
  using SetSampleAside = std::function<bool(std::int64_t number, const Error& error)>;

  /// kInvalidArgument where the stream was read before and cannot begin again.
  StreamFeed(SampleStream stream, const LoaderOptions& options, const Place& place, SetSampleAside set_aside);

  /// Batch `number`, which is not forgotten. kCancelled as Scratch::check_cancelled; that loses nothing.
  std::shared_ptr<const StreamBatch> batch(std::int64_t number, Scratch& scratch);
  /// Whether the epoch had ended before that batch, which was asked for.
  bool ends_at(std::int64_t number) const;
  /// Drops the batches up to that one; what StreamBatch::read says of it.
  std::int64_t forget(std::int64_t number);

 private:
  /// The turn of the one thread that reads.
  class Reading {
   public:
    explicit Reading(StreamFeed& feed) : feed_(feed) {}
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    StreamFeed& feed_;
  };

  /// Nothing where it is not read yet. With mutex_.
  std::shared_ptr<const StreamBatch> find(std::int64_t number) const;
  void read_one(Scratch& scratch);
  void fill(StreamBatch& batch, Scratch& scratch);
  /// The next sample of this rank; null at the end.
  StreamItemPtr next(StreamBatch& batch, Scratch& scratch);
  StreamItemPtr next_of_all(Scratch& scratch);
  StreamItemPtr last_of_ranks(StreamBatch& batch);
  Error named(const Error& error, std::int64_t number) const;
  void go_to_place();

  const SampleStream stream_;
  const std::size_t batch_size_;
  const bool drop_last_;
  const std::size_t rank_;
  const std::size_t ranks_;
  const Remainder remainder_;
  const Place place_;
  const SetSampleAside set_aside_;

  // Of the thread that reads.
  std::unique_ptr<StreamReader> reader_;
  std::vector<StreamItemPtr> first_;  ///< samples of all ranks, as many as there are ranks
  std::vector<StreamItemPtr> group_;  ///< those of which each rank takes one, as far as they are read
  StreamBatch current_;               ///< that a stopped worker left
  bool ended_ = false;
  bool seek_tried_ = false;

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable read_on_;
  bool is_being_read_ = false;
  std::deque<std::shared_ptr<const StreamBatch>> batches_;
  std::int64_t first_batch_ = 0;  ///< the number of batches_.front()
  std::int64_t read_ = 0;         ///< that the last forgotten batch says
};

}  // namespace penstock::data
