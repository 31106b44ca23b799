#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "data/sample/work.h"
#include "data/stream/node.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock::data {

/// How far a stream was read.
struct StreamPlace {
  std::int64_t read = 0;  ///< how many samples the sources had been asked for
  std::int64_t held = 0;  ///< of these the last ones, which no batch has yet: an error came between
};

/// The samples of one batch, or the error that stands in their place.
struct StreamBatch {
  std::vector<StreamItemPtr> items;
  bool left_out = false;   ///< there are no items, because those that came were set aside
  bool padded = false;     ///< the last item repeats an earlier one and does not count (Remainder::kExact)
  StreamPlace place = {};  ///< where the stream stood by then
  std::optional<Error> error;

  /// Whether it stands for the end of the epoch.
  bool ends() const noexcept { return items.empty() && !left_out && !error; }
};

/// One epoch of a stream, cut into batches, for workers that ask for them by number. The first worker that asks reads
/// up to its batch, and those that ask for an earlier one find it here. A batch stays until `forget`, because a worker
/// may have to make it again. Thread-safe.
class StreamFeed {
 public:
  struct Start {
    EpochSeed seed;
    std::int64_t batch = 0;
    std::optional<StreamPlace> place = {};  ///< where the stream must stand just before that batch; none: anywhere
  };
  /// Told of a sample that a function refused while the stream was read. Sets it aside; or returns false, and then the
  /// batch fails with that error.
  using SetSampleAside = std::function<bool(std::int64_t number, const Error& error)>;

  /// kInvalidArgument where the stream was read before and cannot begin again.
  StreamFeed(SampleStream stream, const LoaderOptions& options, const Start& place, SetSampleAside set_aside);

  /// Batch `number`, which must not be forgotten. kCancelled as CallContext::check_cancelled, without loss of a sample.
  std::shared_ptr<const StreamBatch> batch(std::int64_t number, const Work& work);
  /// Whether the epoch ended before batch `number`, which `batch` has given.
  bool ends_at(std::int64_t number) const;
  /// Drops the batches up to `number`; returns StreamBatch::place of the last one that was dropped.
  StreamPlace forget(std::int64_t number);

 private:
  /// The right to read, which one thread has at a time; its end wakes those that wait.
  class Reading {
   public:
    explicit Reading(StreamFeed& feed) : feed_(feed) {}
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    StreamFeed& feed_;
  };

  /// Batch `number`, or null when it has not been read yet. Call it with mutex_ locked.
  std::shared_ptr<const StreamBatch> find(std::int64_t number) const;
  void read_one(const Work& work);
  /// The error that the next batch is, or none: current_ is the batch.
  std::optional<Error> fill_current(const Work& work);
  void fill(StreamBatch& batch, const Work& work);
  /// The next sample of this rank; null at the end.
  StreamItemPtr next(StreamBatch& batch, const Work& work);
  StreamItemPtr next_of_all(const Work& work);
  StreamItemPtr last_of_ranks(StreamBatch& batch);
  void go_to_place();

  const SampleStream stream_;
  const std::size_t batch_size_;
  const bool drop_last_;
  const std::size_t rank_;
  const std::size_t ranks_;
  const Remainder remainder_;
  const Start place_;
  const SetSampleAside set_aside_;

  // Used only by the thread that reads.
  std::unique_ptr<StreamReader> reader_;
  std::vector<StreamItemPtr> first_;  ///< the first samples of the stream, one for each rank: what may be repeated
  std::vector<StreamItemPtr> group_;  ///< the samples read so far of a group of which each rank takes one
  StreamBatch current_;               ///< being filled; an error, or a worker that is stopped, leaves it to the next
  std::int64_t first_read_ = 0;       ///< StreamPlace::read before the first sample of current_ and group_
  std::int64_t told_ = 0;             ///< errors up to there (StreamPlace::read) were thrown before the saved position
  std::size_t refused_ = 0;           ///< samples one behind the other that were set aside
  bool ended_ = false;
  bool seek_tried_ = false;

  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable read_on_;
  bool is_being_read_ = false;
  std::deque<std::shared_ptr<const StreamBatch>> batches_;
  std::int64_t first_batch_ = 0;  ///< the number of batches_.front()
  StreamPlace forgotten_;         ///< StreamBatch::place of the last batch that was forgotten
};

}  // namespace penstock::data
