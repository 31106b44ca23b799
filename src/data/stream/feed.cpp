// A stream has one reader, but a loader has many workers. So one worker at a time reads for all of them, batch by
// batch. A batch holds what the source gave. Each worker calls the functions of `map` on its own batch, so they run in
// parallel.
//
// To go on from a saved position, the batches before it are read again and dropped. This reaches the same place
// whatever the shuffles, filters and errors are, because they repeat. Afterwards `read` shows whether the stream has
// changed. A source that can begin at any sample is asked to do so instead, unless something between it and the loader
// (a shuffle, a filter) depends on the samples before.

#include "data/stream/feed.h"

#include <chrono>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "data/dataset/with_runner.h"
#include "data/dataset_impl.h"
#include "data/sample/blame.h"

namespace penstock::data {

StreamFeed::StreamFeed(SampleStream stream, const LoaderOptions& options, const Start& place, SetSampleAside set_aside)
    : stream_(std::move(stream)),
      batch_size_(static_cast<std::size_t>(options.batch_size)),
      drop_last_(options.drop_last),
      rank_(static_cast<std::size_t>(options.ranks.value_or(Ranks()).rank)),
      ranks_(static_cast<std::size_t>(options.ranks.value_or(Ranks()).size)),
      remainder_(options.remainder),
      place_(place),
      set_aside_(std::move(set_aside)),
      reader_(stream_.node()->open(place.seed)) {}

StreamFeed::Reading::~Reading() {
  const std::scoped_lock lock(feed_.mutex_);
  feed_.is_being_read_ = false;
  feed_.read_on_.notify_all();
}

std::shared_ptr<const StreamBatch> StreamFeed::find(std::int64_t number) const {
  const std::int64_t at = number - first_batch_;
  // A forgotten batch is asked for only by a worker of an earlier run, which was stopped.
  if (at < 0) throw Error(ErrorCode::kCancelled, "the loader was stopped");
  return at < std::ssize(batches_) ? batches_[static_cast<std::size_t>(at)] : nullptr;
}

std::shared_ptr<const StreamBatch> StreamFeed::batch(std::int64_t number, const Work& work) {
  constexpr std::chrono::milliseconds kPatience{50};  // how long a worker waits before it looks whether it was stopped
  while (true) {
    work.call.check_cancelled();
    {
      std::unique_lock lock(mutex_);
      if (std::shared_ptr<const StreamBatch> found = find(number)) return found;
      if (is_being_read_) {
        read_on_.wait_for(lock, kPatience);
        continue;
      }
      is_being_read_ = true;
    }
    const Reading reading(*this);
    const RunnerScope scope(runner_of(stream_.samples()));
    if (!seek_tried_) go_to_place();
    read_one(work);
  }
}

bool StreamFeed::ends_at(std::int64_t number) const {
  const std::scoped_lock lock(mutex_);
  const std::shared_ptr<const StreamBatch> found = find(number);
  return found && found->ends();
}

StreamPlace StreamFeed::forget(std::int64_t number) {
  std::vector<std::shared_ptr<const StreamBatch>> gone;  // outlives the lock: its samples may be Python's
  const std::scoped_lock lock(mutex_);
  while (first_batch_ <= number && !batches_.empty()) {
    forgotten_ = batches_.front()->place;
    gone.push_back(std::move(batches_.front()));
    batches_.pop_front();
    ++first_batch_;
  }
  return forgotten_;
}

void StreamFeed::go_to_place() {
  seek_tried_ = true;
  // Ranks that lack a sample at the end repeat one of the first samples. These must be read, so we cannot seek past
  // them.
  const bool needs_first = ranks_ > 1 && remainder_ != Remainder::kDrop;
  // Where nothing was read, as behind an error, reading all of it tells whether that is so: a position may lack it.
  if (place_.batch == 0 || !place_.place || place_.place->read == 0 || needs_first) return;
  if (!reader_->seek(place_.place->read - place_.place->held)) return;
  told_ = place_.place->read;
  const std::scoped_lock lock(mutex_);
  first_batch_ = place_.batch;
}

/// Reads the next batch. Drops it when it lies before the saved position.
void StreamFeed::read_one(const Work& work) {
  work.figures.clock.start();
  StreamBatch done;
  done.error = fill_current(work);
  work.figures.clock.lap(Stage::kFunction);
  if (!done.error) done = std::exchange(current_, {});
  const std::int64_t read = reader_->read();
  const bool holds = !current_.items.empty() || !group_.empty();
  done.place = {.read = read, .held = holds ? read - first_read_ : 0};
  const std::scoped_lock lock(mutex_);
  const std::int64_t number = first_batch_ + std::ssize(batches_);
  if (number >= place_.batch) {
    batches_.push_back(std::make_shared<const StreamBatch>(std::move(done)));
    return;
  }
  ++first_batch_;
  if (!done.ends() && (first_batch_ < place_.batch || !place_.place || done.place.read == place_.place->read)) return;
  first_batch_ = place_.batch;
  ended_ = true;
  StreamBatch end;  // what was read outlives the lock: it may be Python's
  end.place = done.place;
  end.error =
      Error(ErrorCode::kChanged,
            core::format("{} has changed: at the saved position {} had been read for {}, but now {} were read; go on "
                         "from the beginning of an epoch, or with the stream as it was",
                         core::escaped(stream_.node()->name()),
                         core::counted(static_cast<std::uint64_t>(place_.place ? place_.place->read : 0), "sample"),
                         core::counted(static_cast<std::uint64_t>(place_.batch), "batch", "batches"), done.place.read));
  batches_.push_back(std::make_shared<const StreamBatch>(std::move(end)));
}

std::optional<Error> StreamFeed::fill_current(const Work& work) {
  while (true) {
    std::optional<Error> error;
    const std::int64_t before = reader_->read();
    try {
      fill(current_, work);
      return std::nullopt;
    } catch (const SampleError& bad) {
      error = of_sample(bad.error(), stream_.samples(), static_cast<std::int64_t>(bad.position()));
    } catch (const Error& of_source) {
      error = of_source;
    }
    if (error->code() == ErrorCode::kCancelled) throw Error(*error);
    if (const std::int64_t read = reader_->read(); read > told_ || read == before) return error;
  }
}

void StreamFeed::fill(StreamBatch& batch, const Work& work) {
  while (batch.items.size() < batch_size_) {
    StreamItemPtr item;
    try {
      item = next(batch, work);
    } catch (const SampleError& error) {
      const auto number = static_cast<std::int64_t>(error.position());
      if (++refused_ > kMostInARow) throw SampleError(error.position(), outage(error.error(), refused_));
      if (!set_aside_(number, of_sample(error.error(), stream_.samples(), number))) throw;
      batch.left_out = batch.items.empty();
      continue;
    }
    refused_ = 0;
    if (!item) break;
    batch.items.push_back(std::move(item));
    batch.left_out = false;
  }
  if (drop_last_ && batch.items.size() < batch_size_) batch.items.clear();
}

StreamItemPtr StreamFeed::next_of_all(const Work& work) {
  if (ended_) return nullptr;
  if (current_.items.empty() && group_.empty()) first_read_ = reader_->read();
  StreamItemPtr item = reader_->next(work);
  ended_ = item == nullptr;
  return item;
}

StreamItemPtr StreamFeed::next(StreamBatch& batch, const Work& work) {
  if (ranks_ == 1) return next_of_all(work);
  while (group_.size() < ranks_) {
    StreamItemPtr item = next_of_all(work);
    if (!item) return last_of_ranks(batch);
    if (first_.size() < ranks_) first_.push_back(item);
    group_.push_back(std::move(item));
  }
  StreamItemPtr own = group_[rank_];
  group_.clear();
  return own;
}

/// The stream has ended inside a group: some ranks have one more sample, the others have none.
StreamItemPtr StreamFeed::last_of_ranks(StreamBatch& batch) {
  const std::vector<StreamItemPtr> group = std::exchange(group_, {});
  if (group.empty() || remainder_ == Remainder::kDrop) return nullptr;
  if (rank_ < group.size()) return group[rank_];
  batch.padded = remainder_ == Remainder::kExact;
  return first_[(rank_ - group.size()) % first_.size()];
}

}  // namespace penstock::data
