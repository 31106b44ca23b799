#include "io/move/engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/stopwatch.h"
#include "core/task_pool.h"
#include "io/move/arrivals.h"
#include "io/move/check_move.h"
#include "io/move/range_reader.h"

namespace penstock::io {
namespace {

// Threads for what comes from the disk: they wait.
constexpr std::size_t kColdThreads = 8;
// Less than this for each thread is not worth starting one; inflating is some five times slower than reading.
constexpr std::uint64_t kBytesPerThread = 2 * 1024 * 1024;
constexpr std::uint64_t kDecodedBytesPerThread = 256 * 1024;
constexpr std::size_t kMaxThreads = 16;

/// Hands out the ranges and steps of a move to any number of threads.
class Execution {
 public:
  Execution(const Move& move, const EngineOptions& options)
      : move_(move),
        options_(options),
        reader_(move, options, failed_),
        arrivals_(move.plan, move.steps, move.buffers.size()) {
    ready_.reserve(move.steps.size());  // while threads work nothing may fail to be told
    arrivals_.ready_at_once(ready_);
  }

  /// Takes items until there are none; any number of threads at once.
  void work() noexcept {
    RangeReader::Worker worker;
    std::unique_lock lock(mutex_);
    while (const std::optional<Item> item = next_item(lock)) {
      lock.unlock();
      const std::exception_ptr failure = run(*item, worker);
      lock.lock();
      finished(*item, failure);
    }
    read_seconds_ += worker.read_seconds;
    decode_seconds_ += worker.decode_seconds;
    mapped_bytes_ += worker.mapped_bytes;
  }

  /// After all threads have returned.
  void finish() const {
    if (failure_) {
      reader_.settle();
      std::rethrow_exception(failure_);
    }
    reader_.finish();
  }
  const RangeReader& reader() const noexcept { return reader_; }
  std::uint64_t mapped_bytes() const noexcept { return mapped_bytes_; }
  double read_seconds() const noexcept { return read_seconds_; }
  double decode_seconds() const noexcept { return decode_seconds_; }

 private:
  struct Item {
    bool is_step;
    std::size_t index;
  };

  /// Steps come first: what they work on is still in a cache.
  std::optional<Item> next_item(std::unique_lock<std::mutex>& lock) {
    while (!failed_) {
      if (!ready_.empty()) {
        const std::size_t step = ready_.back();
        ready_.pop_back();
        return Item{true, step};
      }
      if (next_range_ < move_.plan.ranges.size()) {
        ++reading_;
        return Item{false, next_range_++};
      }
      // Only the end of a range makes steps ready.
      if (reading_ == 0 || move_.steps.empty()) break;
      wake_.wait(lock);
    }
    return std::nullopt;
  }

  void finished(const Item& item, const std::exception_ptr& failure) {
    if (!item.is_step) --reading_;
    if (failure) {
      if (!failure_) failure_ = failure;
      failed_ = true;
    } else if (!item.is_step) {
      arrivals_.done(item.index, ready_);
    }
    if (!move_.steps.empty()) wake_.notify_all();
  }

  std::exception_ptr run(const Item& item, RangeReader::Worker& worker) noexcept {
    try {
      require_going_on(options_.stop);
      if (item.is_step) {
        core::Stopwatch watch;
        move_.steps[item.index].run();
        worker.decode_seconds += watch.lap();
      } else {
        reader_.read(item.index, worker);
      }
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  const Move& move_;
  const EngineOptions& options_;
  std::atomic<bool> failed_{false};  // written under the mutex, looked at between chunks without
  RangeReader reader_;

  std::mutex mutex_;
  std::condition_variable wake_;
  Arrivals arrivals_;
  std::vector<std::size_t> ready_;
  std::size_t next_range_ = 0;
  std::size_t reading_ = 0;
  std::exception_ptr failure_;
  double read_seconds_ = 0;
  double decode_seconds_ = 0;
  std::uint64_t mapped_bytes_ = 0;
};

std::size_t threads_for(const Move& move, const EngineOptions& options, const Routes* routes) {
  const std::size_t items = std::max<std::size_t>(move.plan.ranges.size(), move.steps.size());
  if (options.threads != 0) return std::min(options.threads, items);
  if (routes != nullptr && routes->waits_for_disk()) return std::min(kColdThreads, items);
  const std::uint64_t share = move.steps.empty() ? kBytesPerThread : kDecodedBytesPerThread;
  const std::size_t worthwhile =
      static_cast<std::size_t>(std::min<std::uint64_t>(move.plan.read_bytes / share, kMaxThreads));
  // Asking for the processors reads files of the system, so it is asked last.
  const std::size_t wanted = std::min(worthwhile, items);
  return wanted <= 1 ? 1 : std::min(wanted, core::usable_cpus());
}

/// Which way most of the bytes of a move went.
class Way {
 public:
  Way(const Move& move, const Execution& execution)
      : move_(move),
        reader_(execution.reader()),
        direct_(reader_.routes() != nullptr && most(reader_.routes()->direct_bytes())),
        mapped_(most(execution.mapped_bytes())),
        by_device_(reader_.device_routes() != nullptr ? reader_.device_routes()->route(move.plan.read_bytes)
                                                      : std::string_view()),
        by_host_(reader_.reader_name(move.plan.ranges.front().source)) {}

  std::string_view route() const {
    if (!by_device_.empty()) return by_device_;
    if (reader_.ring() != nullptr) return "ring";
    if (direct_) return "direct";
    return by_host_ == "memory" ? "memory" : "read";
  }

  std::string why(std::size_t threads) const {
    const std::size_t ranges = move_.plan.ranges.size();
    std::string why = core::format("{} {} into {} by {} {}", ranges, ranges == 1 ? "range" : "ranges", memory(),
                                   threads, threads == 1 ? "thread" : "threads");
    if (by_device_.empty())
      why += core::format(" with {}", direct_ ? "direct reads" : mapped_ ? "copies out of a mapping" : by_host_);
    if (reader_.routes() != nullptr) why += reader_.routes()->why();
    if (reader_.device_routes() != nullptr) why += reader_.device_routes()->why(move_.plan.read_bytes);
    return why;
  }

 private:
  bool most(std::uint64_t bytes) const { return bytes * 2 > move_.plan.read_bytes; }
  std::string memory() const {
    if (!by_device_.empty()) return "device memory through " + reader_.device_routes()->how();
    if (reader_.ring() == nullptr) return "host memory";
    return reader_.ring()->is_locked()
               ? "device memory through the pinned ring"
               : "device memory through a ring that the driver did not page-lock, which is slower,";
  }

  const Move& move_;
  const RangeReader& reader_;
  bool direct_;
  bool mapped_;
  std::string_view by_device_;
  std::string_view by_host_;
};

void describe(const Move& move, const Execution& execution, std::size_t threads, bool explain, Report& report) {
  report.read_bytes += move.plan.read_bytes;
  report.payload_bytes += move.plan.payload_bytes;
  report.read_seconds += execution.read_seconds();
  report.decode_seconds += execution.decode_seconds();
  if (move.plan.ranges.empty()) return;
  const Way way(move, execution);
  report.route = way.route();
  if (explain) report.why = way.why(threads);
}

}  // namespace

void execute(const Move& move, const EngineOptions& options, Report& report) {
  check(move);
  Execution execution(move, options);
  const std::size_t threads = threads_for(move, options, execution.reader().routes());
  if (threads <= 1) {
    execution.work();
  } else {
    core::parallel_for(threads, threads, [&](std::size_t) { execution.work(); });
  }
  describe(move, execution, threads, options.explain, report);
  execution.finish();
}

}  // namespace penstock::io
