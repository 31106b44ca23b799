// Parts are handed out in the order of their numbers. Steps are handed out as soon as the parts before them are done,
// and sooner than further parts, because the bytes that they work on are still in a cache.
//
// Without steps, a counter is all that the threads share. With steps, each item is taken under a lock, because a thread
// that finds nothing to do has to wait: the end of another thread's part may make a step ready.

#include "io/move/work_queue.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "core/progress.h"
#include "core/stop_scope.h"
#include "core/task_pool.h"
#include "io/remote/traffic.h"
#include "penstock/error.h"

namespace penstock::io {

class WorkQueue {
 public:
  WorkQueue(std::uint64_t parts, const WorkOptions& options)
      : parts_(parts), stop_(options.stop), arrivals_(options.arrivals) {
    if (arrivals_ != nullptr) arrivals_->ready_at_once(ready_);
  }

  bool goes_on() const {
    require_going_on(stop_);
    return !failed_;
  }

  std::optional<WorkItem> next(const std::optional<WorkItem>& done) {
    if (!goes_on()) return std::nullopt;
    if (arrivals_ != nullptr) return next_or_step(done);
    const std::uint64_t part = next_part_++;
    return part < parts_ ? std::optional(WorkItem{part, false}) : std::nullopt;
  }

  /// What one thread does.
  void run(const std::function<void(Worker&)>& work) noexcept {
    Worker worker(*this);
    const core::StopScope scope(stop_);
    const remote::TrafficScope traffic(traffic_);
    std::exception_ptr failure;
    try {
      work(worker);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    spent_.add(worker.spent);
    if (!failure) return;
    if (!failure_) failure_ = std::move(failure);
    failed_ = true;
    wake_.notify_all();
  }

  /// What a thread has read since it last said so.
  void tell(std::uint64_t bytes) const {
    if (meter_ != nullptr && bytes != 0) meter_->advance(bytes);
  }

  /// After all threads have returned.
  const std::exception_ptr& failure() const noexcept { return failure_; }
  const Spent& spent() const noexcept { return spent_; }

 private:
  std::optional<WorkItem> next_or_step(const std::optional<WorkItem>& done) {
    std::unique_lock lock(mutex_);
    if (done && !done->is_step) {
      --parts_at_work_;
      arrivals_->done(static_cast<std::size_t>(done->index), ready_);
      wake_.notify_all();
    }
    while (!failed_) {
      if (!ready_.empty()) {
        const std::size_t step = ready_.back();
        ready_.pop_back();
        return WorkItem{step, true};
      }
      if (next_part_ < parts_) {
        ++parts_at_work_;
        return WorkItem{next_part_++, false};
      }
      // Only the end of a part makes steps ready.
      if (parts_at_work_ == 0) break;
      wake_.wait(lock);
    }
    return std::nullopt;
  }

  const std::uint64_t parts_;
  const std::stop_token stop_;
  Arrivals* const arrivals_;
  core::ProgressMeter* const meter_ = core::ProgressMeter::current();
  remote::TrafficMeter* const traffic_ = remote::TrafficScope::current();
  std::atomic<std::uint64_t> next_part_{0};
  std::atomic<bool> failed_{false};  // written under the mutex, looked at without

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::size_t> ready_;  ///< steps
  std::uint64_t parts_at_work_ = 0;
  std::exception_ptr failure_;
  Spent spent_;
};

void Spent::add(const Spent& other) noexcept {
  read_bytes += other.read_bytes;
  mapped_bytes += other.mapped_bytes;
  read_seconds += other.read_seconds;
  decode_seconds += other.decode_seconds;
}

void Spent::add_to(Report& report) const noexcept {
  report.read_bytes += read_bytes;
  report.read_seconds += read_seconds;
  report.decode_seconds += decode_seconds;
}

std::optional<WorkItem> Worker::next() {
  queue_.tell(spent.read_bytes - std::exchange(told_, spent.read_bytes));
  return item_ = queue_.next(item_);
}
bool Worker::goes_on() const { return queue_.goes_on(); }

Spent work_through(std::uint64_t parts, const WorkOptions& options, const std::function<void(Worker&)>& work) {
  WorkQueue queue(parts, options);
  if (options.threads <= 1) {
    queue.run(work);
  } else {
    core::parallel_for(options.threads, options.threads, [&](std::size_t) { queue.run(work); });
  }
  if (!queue.failure()) return queue.spent();
  if (options.writes != nullptr) options.writes->settle();
  std::rethrow_exception(queue.failure());
}

void require_going_on(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
}

}  // namespace penstock::io
