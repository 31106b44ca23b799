// Parts are handed out in the order of their numbers. Steps are handed out as soon as the parts before them are done,
// and sooner than further parts, because the bytes that they work on are still in a cache.
//
// Without steps or a depth, a counter is all that the threads share. With steps, each item is taken under a lock,
// because a thread that finds nothing to do has to wait: the end of another thread's part may make a step ready.
//
// With a depth (io/read/depth.h), as many threads work as it says. They are started when it grows; when it shrinks,
// some wait for their turn, between two parts and never within one, so that nobody waits for what they hold.

#include "io/move/work_queue.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
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
  WorkQueue(std::uint64_t parts, const WorkOptions& options, const std::function<void(Worker&)>& work)
      : parts_(parts), stop_(options.stop), arrivals_(options.arrivals), depth_(options.depth), work_(work) {
    if (arrivals_ != nullptr) arrivals_->ready_at_once(ready_);
  }

  bool goes_on() const {
    require_going_on(stop_);
    return !failed_;
  }

  std::optional<WorkItem> next(const std::optional<WorkItem>& done) {
    if (!goes_on()) return std::nullopt;
    if (arrivals_ == nullptr && depth_ == nullptr) return next_part();
    std::unique_lock lock(mutex_);
    if (arrivals_ != nullptr && done && !done->is_step) note_done(*done);
    if (depth_ != nullptr) wait_for_turn(lock);
    const std::optional<WorkItem> item = arrivals_ == nullptr ? next_part() : next_or_step(lock);
    if (next_part_ >= parts_) turn_.notify_all();
    return item;
  }

  bool has_depth() const noexcept { return depth_ != nullptr; }

  /// A request has brought so many bytes. Starts threads when that says that more of them pay.
  void arrived(std::uint64_t bytes) {
    {
      const std::scoped_lock lock(mutex_);
      const std::size_t limit = depth_->limit();
      depth_->look(Depth::Clock::now(), arrived_bytes_ += bytes, ++arrived_requests_,
                   working_ == limit && next_part_ < parts_);
      if (depth_->limit() <= limit) return;
    }
    turn_.notify_all();
    start_more();
  }

  /// On as many threads as the depth says; the caller's is one of them.
  void run_by_depth() {
    started_ = 1;
    start_more();
    run();
    // Only a thread that is not joined yet starts another one.
    while (std::optional<std::jthread> last = take_thread()) last->join();
    spent_.threads = started_;
    spent_.refused = refused_;
  }

  void run_on(std::size_t threads) {
    threads = std::max<std::size_t>(threads, 1);
    if (threads == 1) {
      run();
    } else {
      core::parallel_for(threads, threads, [this](std::size_t) { run(); });
    }
    spent_.threads = threads;
  }

  /// What one thread does.
  void run() noexcept {
    if (depth_ != nullptr) add_working(1);
    Worker worker(*this);
    const core::StopScope scope(stop_);
    const remote::TrafficScope traffic(traffic_);
    std::exception_ptr failure;
    try {
      work_(worker);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    spent_.add(worker.spent);
    if (depth_ != nullptr) --working_;
    // The first is told: those behind it are often what it led to, as a stop is.
    if (failure && !failure_) failure_ = failure;
    if (failure) failed_ = true;
    if (failure) wake_.notify_all();
    turn_.notify_all();
  }

  /// What a thread has read since it last said so.
  void tell(std::uint64_t bytes) const {
    if (meter_ != nullptr && bytes != 0) meter_->advance(bytes);
  }

  /// After all threads have returned.
  const std::exception_ptr& failure() const noexcept { return failure_; }
  const Spent& spent() const noexcept { return spent_; }

 private:
  std::optional<WorkItem> next_part() {
    const std::uint64_t part = next_part_++;
    return part < parts_ ? std::optional(WorkItem{part, false}) : std::nullopt;
  }

  void note_done(const WorkItem& part) {
    --parts_at_work_;
    arrivals_->done(static_cast<std::size_t>(part.index), ready_);
    wake_.notify_all();
  }

  std::optional<WorkItem> next_or_step(std::unique_lock<std::mutex>& lock) {
    while (!failed_) {
      if (!ready_.empty()) {
        // The newest: its bytes are the likeliest to be in a cache still.
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

  /// Not for the last parts: then nobody is kept who could take a step.
  void wait_for_turn(std::unique_lock<std::mutex>& lock) {
    if (working_ <= depth_->limit()) return;
    --working_;
    turn_.wait(lock, [this] { return failed_ || next_part_ >= parts_ || working_ < depth_->limit(); });
    ++working_;
  }

  void add_working(std::size_t threads) {
    const std::scoped_lock lock(mutex_);
    working_ += threads;
  }

  /// As many threads as may work, while there are parts for them.
  void start_more() {
    while (may_start()) {
      try {
        std::jthread thread([this] { run(); });
        const std::scoped_lock lock(mutex_);
        threads_.push_back(std::move(thread));
      } catch (const std::system_error&) {
        // Fewer threads do the same work.
        const std::scoped_lock lock(mutex_);
        --started_;
        refused_ = true;
      }
    }
  }

  bool may_start() {
    const std::scoped_lock lock(mutex_);
    const bool wanted = started_ < depth_->limit() && next_part_ < parts_ && !failed_ && !refused_;
    if (wanted) ++started_;
    return wanted;
  }

  std::optional<std::jthread> take_thread() {
    const std::scoped_lock lock(mutex_);
    if (threads_.empty()) return std::nullopt;
    std::optional<std::jthread> last(std::move(threads_.back()));
    threads_.pop_back();
    return last;
  }

  const std::uint64_t parts_;
  const std::stop_token stop_;
  Arrivals* const arrivals_;
  Depth* const depth_;
  const std::function<void(Worker&)>& work_;
  core::ProgressMeter* const meter_ = core::ProgressMeter::current();
  remote::TrafficMeter* const traffic_ = remote::TrafficScope::current();
  std::atomic<std::uint64_t> next_part_{0};
  std::atomic<bool> failed_{false};  // written under the mutex, looked at without

  std::mutex mutex_;
  std::condition_variable wake_;    ///< of those that wait for steps
  std::condition_variable turn_;    ///< of those that are more than the depth says
  std::vector<std::size_t> ready_;  ///< steps
  std::uint64_t parts_at_work_ = 0;
  std::exception_ptr failure_;
  Spent spent_;

  // With a depth.
  std::size_t working_ = 0;
  std::size_t started_ = 0;
  bool refused_ = false;
  std::uint64_t arrived_bytes_ = 0;
  std::uint64_t arrived_requests_ = 0;
  std::vector<std::jthread> threads_;
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
bool Worker::has_depth() const noexcept { return queue_.has_depth(); }
void Worker::arrived(std::uint64_t bytes) { queue_.arrived(bytes); }

Spent work_through(std::uint64_t parts, const WorkOptions& options, const std::function<void(Worker&)>& work) {
  WorkQueue queue(parts, options, work);
  if (options.depth != nullptr) {
    queue.run_by_depth();
  } else {
    queue.run_on(options.threads);
  }
  if (!queue.failure()) return queue.spent();
  if (options.writes != nullptr) options.writes->settle();
  std::rethrow_exception(queue.failure());
}

void require_going_on(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
}

}  // namespace penstock::io
