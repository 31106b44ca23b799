#include "io/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/task_pool.h"
#include "io/arrivals.h"
#include "io/checksums.h"
#include "io/copy_trial.h"
#include "io/device_routes.h"
#include "io/device_writes.h"
#include "io/mapped_range.h"
#include "io/reader.h"
#include "io/routes.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

// Checksums are computed on pieces that are still in the second-level cache when the read returns.
constexpr std::uint64_t kChunkBytes = 256 * 1024;
// What comes from the disk is asked for in larger ones, by more threads than there are processors: they wait, and a
// disk is at its best with several requests of this size.
constexpr std::uint64_t kColdChunkBytes = 1024 * 1024;
constexpr std::size_t kColdThreads = 8;
// What is copied out of a mapping is checksummed on the way; each copy costs a guard.
constexpr std::uint64_t kMappedChunkBytes = 1024 * 1024;
// How long shorter ranges take tells little of the way they went.
constexpr std::uint64_t kTellingBytes = 1024 * 1024;
// Between two requests to a device that reads by itself the load can be cancelled.
constexpr std::uint64_t kDeviceChunkBytes = 16 * 1024 * 1024;
// Less than this for each thread is not worth starting one; inflating is some five times slower than reading.
constexpr std::uint64_t kBytesPerThread = 2 * 1024 * 1024;
constexpr std::uint64_t kDecodedBytesPerThread = 256 * 1024;
constexpr std::size_t kMaxThreads = 16;

class Stopwatch {
 public:
  /// Seconds since the last call, or since construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void check_target(const Target& target, std::span<const Buffer> buffers) {
  if (target.buffer == kDiscard) return;
  if (target.buffer >= buffers.size())
    throw Error(ErrorCode::kInvalidArgument, "the plan names a buffer that is not there");
  const Buffer& buffer = buffers[target.buffer];
  if (!core::range_fits(target.buffer_offset, target.length, buffer.size())) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the plan fills bytes {} to {} of a buffer of {}", target.buffer_offset,
                             target.buffer_offset + target.length, buffer.size()));
  }
  if (buffer.read_only()) throw Error(ErrorCode::kInvalidArgument, "the plan fills read-only memory");
}

/// Everything that a reading thread relies on.
void check(const Move& move) {
  for (const Range& range : move.plan.ranges) {
    if (range.source >= move.sources.size()) {
      throw Error(ErrorCode::kInvalidArgument, "the plan names a source that is not there");
    }
    if (!core::range_fits(range.first_target, range.target_count, move.plan.targets.size())) {
      throw Error(ErrorCode::kInvalidArgument, "a range of the plan has targets that are not there");
    }
    std::uint64_t left = range.length;
    for (const Target& target : std::span(move.plan.targets).subspan(range.first_target, range.target_count)) {
      check_target(target, move.buffers);
      if (target.length > left) left = 0;
      left -= std::min(left, target.length);
    }
    if (left != 0) throw Error(ErrorCode::kInvalidArgument, "a range of the plan is longer than its targets");
  }
  for (const Step& step : move.steps) {
    for (const std::uint32_t buffer : step.buffers) {
      if (buffer >= move.buffers.size()) {
        throw Error(ErrorCode::kInvalidArgument, "a step waits for a buffer that is not there");
      }
    }
  }
}

struct Seconds {
  double read = 0;
  double decode = 0;
};

/// What each thread has of its own.
struct Worker {
  Seconds seconds;
  DirectScratch scratch;
  std::uint64_t mapped_bytes = 0;
  bool begun = false;  ///< whether it has read a range
};

/// One execution: what its threads share.
class Execution {
 public:
  Execution(const Move& move, const EngineOptions& options)
      : move_(move),
        options_(options),
        checksums_(move.checksums, move.sources),
        device_(move.buffers),
        trial_(!move.checksums.empty()),
        arrivals_(move.plan, move.steps, move.buffers.size()) {
    if (options.reader == nullptr) {
      routes_.emplace(move.plan, move.sources, options.direct, options.mapped);
      device_routes_.emplace(move, device_, checksums_, *routes_, options);
    }
    for (const SourcePtr& source : move.sources) {
      readers_.push_back(options.reader != nullptr ? options.reader : &reader_for(*source));
    }
    arrivals_.ready_at_once(ready_);
  }

  /// Takes items until there are none; any number of threads at once.
  void work() noexcept {
    Worker worker;
    std::unique_lock lock(mutex_);
    while (const std::optional<Item> item = next_item(lock)) {
      lock.unlock();
      const std::exception_ptr failure = run(*item, worker);
      lock.lock();
      finished(*item, failure);
    }
    seconds_.read += worker.seconds.read;
    seconds_.decode += worker.seconds.decode;
    mapped_bytes_ += worker.mapped_bytes;
  }

  /// After all threads have returned.
  void finish() const {
    if (failure_) std::rethrow_exception(failure_);
    checksums_.require_complete();
    device_.finish(options_.wait);
  }
  bool uses_ring() const noexcept { return !device_.empty(); }
  const Routes* routes() const noexcept { return routes_ ? &*routes_ : nullptr; }
  const DeviceRoutes* device_routes() const noexcept { return device_routes_ ? &*device_routes_ : nullptr; }
  std::uint64_t mapped_bytes() const noexcept { return mapped_bytes_; }
  const Seconds& seconds() const noexcept { return seconds_; }
  std::string_view reader_name(std::uint32_t source) const noexcept { return readers_[source]->name; }

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

  std::exception_ptr run(const Item& item, Worker& worker) noexcept {
    try {
      require_going_on();
      if (item.is_step) {
        Stopwatch watch;
        move_.steps[item.index].run();
        worker.seconds.decode += watch.lap();
      } else {
        read(item.index, worker);
      }
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void require_going_on() const {
    if (options_.stop.stop_requested())
      throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
  }

  /// A range that a thread reads.
  struct Reading {
    std::size_t range;
    Staging staging;
    Worker& worker;
    std::optional<MappedRange> mapped;
  };

  void read(std::size_t index, Worker& worker);
  void read_by_host(Reading& reading, std::span<const Target> targets);
  void read_chunks(Reading& reading, std::uint64_t offset, std::span<const Target> targets);
  std::uint64_t read_by_device(DeviceFile& file, std::uint64_t offset, const Target& target, Worker& worker);
  void read_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets);
  void read_parts(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                  std::span<const Scatter> parts);
  std::uint64_t copy_mapped(const MappedRange& from, std::uint64_t offset, const Target& target, std::byte* to);
  std::uint64_t chunk_bytes(const Reading& reading, std::uint64_t offset) const;
  std::byte* place(const Target& target, Staging& staging) const;

  const Move& move_;
  const EngineOptions& options_;
  Checksums checksums_;
  DeviceWrites device_;
  std::vector<const Reader*> readers_;
  std::optional<Routes> routes_;
  std::optional<DeviceRoutes> device_routes_;
  CopyTrial trial_;

  std::mutex mutex_;
  std::condition_variable wake_;
  Arrivals arrivals_;
  std::vector<std::size_t> ready_;
  std::size_t next_range_ = 0;
  std::size_t reading_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};  // written under the mutex, looked at between chunks without
  Seconds seconds_;
  std::uint64_t mapped_bytes_ = 0;
};

/// Cuts the targets of a range into chunks.
class ChunkCutter {
 public:
  explicit ChunkCutter(std::span<const Target> targets) : targets_(targets) {}

  /// The targets of the next `bytes` bytes or less, in `out`; their sum.
  std::uint64_t next(std::uint64_t bytes, std::vector<Target>& out) {
    out.clear();
    std::uint64_t sum = 0;
    while (sum < bytes && index_ < targets_.size()) {
      const Target& target = targets_[index_];
      const std::uint64_t length = std::min(bytes - sum, target.length - done_);
      if (length > 0) out.push_back({target.buffer, target.buffer_offset + done_, length});
      sum += length;
      done_ += length;
      if (done_ == target.length) {
        ++index_;
        done_ = 0;
      }
    }
    return sum;
  }

 private:
  std::span<const Target> targets_;
  std::size_t index_ = 0;
  std::uint64_t done_ = 0;
};

/// Chunks that come from the disk end at whole blocks of it, so that none is read twice.
std::uint64_t Execution::chunk_bytes(const Reading& reading, std::uint64_t offset) const {
  if (reading.mapped) return device_.empty() ? kMappedChunkBytes : kChunkBytes;
  const std::size_t range = reading.range;
  if (!routes_ || (!routes_->cold(range) && routes_->direct(range) == nullptr)) return kChunkBytes;
  const std::uint64_t bytes = device_.empty() ? kColdChunkBytes : kChunkBytes;
  return bytes - offset % (kChunkBytes / 2);
}

void Execution::read(std::size_t index, Worker& worker) {
  const Range& range = move_.plan.ranges[index];
  const auto targets = std::span(move_.plan.targets).subspan(range.first_target, range.target_count);
  DeviceFile* const file = device_routes_ ? device_routes_->file(index) : nullptr;
  Reading reading{index, Staging(device_), worker, std::nullopt};
  if (file == nullptr) read_by_host(reading, targets);
  std::uint64_t offset = range.offset;
  for (std::size_t i = 0; file != nullptr && i < targets.size(); offset += targets[i++].length) {
    if (targets[i].buffer == kDiscard) continue;
    Target rest = targets[i];
    const std::uint64_t done = read_by_device(*file, offset, rest, worker);
    rest.buffer_offset += done;
    rest.length -= done;
    read_chunks(reading, offset + done, {&rest, 1});
  }
  reading.staging.submit();
}

void Execution::read_by_host(Reading& reading, std::span<const Target> targets) {
  const Range& range = move_.plan.ranges[reading.range];
  const ByteSource& source = *move_.sources[range.source];
  const bool mappable = routes_ && routes_->mappable(reading.range) && range.length > 0;
  Stopwatch watch;
  if (mappable && options_.mapped.value_or(trial_.map_next())) {
    reading.mapped = MappedRange::map(source, range.offset, static_cast<std::size_t>(range.length));
  }
  read_chunks(reading, range.offset, targets);
  const bool mapped = reading.mapped.has_value();
  if (mapped) require_uncut(source);
  reading.mapped.reset();
  const double seconds = watch.lap();
  if (mapped) reading.worker.mapped_bytes += range.length;
  // The first range of a thread takes twice as long, whichever way it goes.
  const bool telling = std::exchange(reading.worker.begun, true) && range.length >= kTellingBytes && seconds > 0;
  if (mappable && telling) trial_.done(mapped, static_cast<double>(range.length) / seconds);
}

void Execution::read_chunks(Reading& reading, std::uint64_t offset, std::span<const Target> targets) {
  ChunkCutter cutter(targets);
  std::vector<Target> chunk;
  while (!failed_) {
    const std::uint64_t length = cutter.next(chunk_bytes(reading, offset), chunk);
    if (length == 0) return;
    require_going_on();
    read_chunk(reading, offset, chunk);
    offset += length;
  }
}

/// How many bytes from the front of the target arrived.
std::uint64_t Execution::read_by_device(DeviceFile& file, std::uint64_t offset, const Target& target, Worker& worker) {
  if (!device_routes_->takes(target)) return 0;
  Stopwatch watch;
  std::uint64_t done = 0;
  while (done < target.length && !failed_) {
    require_going_on();
    const std::uint64_t length = std::min(target.length - done, kDeviceChunkBytes);
    if (!file.read(offset + done, device_.buffer(target), target.buffer_offset + done, length)) break;
    done += length;
  }
  device_routes_->arrived(done);
  worker.seconds.read += watch.lap();
  return done;
}

std::byte* Execution::place(const Target& target, Staging& staging) const {
  if (target.buffer == kDiscard) return nullptr;
  if (device_.has(target)) return staging.place(target);
  return move_.buffers[target.buffer].data() + target.buffer_offset;
}

void Execution::read_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets) {
  if (!device_.empty()) reading.staging.make_room(kChunkBytes);
  std::vector<Scatter> parts;
  parts.reserve(targets.size());
  for (const Target& target : targets) {
    parts.push_back({place(target, reading.staging), static_cast<std::size_t>(target.length)});
  }
  if (!reading.mapped) return read_parts(reading, offset, targets, parts);
  for (std::size_t i = 0; i < targets.size(); offset += targets[i++].length) {
    if (!parts[i].to) continue;
    Stopwatch watch;
    Target rest = targets[i];
    const std::uint64_t done = copy_mapped(*reading.mapped, offset, rest, parts[i].to);
    reading.worker.seconds.read += watch.lap();
    if (done == rest.length) continue;
    rest.buffer_offset += done;
    rest.length -= done;
    const Scatter part{parts[i].to + done, static_cast<std::size_t>(rest.length)};
    read_parts(reading, offset + done, {&rest, 1}, {&part, 1});
  }
}

void Execution::read_parts(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                           std::span<const Scatter> parts) {
  Stopwatch watch;
  const std::uint32_t from = move_.plan.ranges[reading.range].source;
  const ByteSource& source = *move_.sources[from];
  DirectFile* const direct = routes_ ? routes_->direct(reading.range) : nullptr;
  try {
    if (direct != nullptr) {
      direct->read(offset, parts, reading.worker.scratch);
    } else {
      readers_[from]->read(source, offset, parts);
    }
  } catch (const Error& error) {
    throw error.within({.path = source.name(), .offset = offset});
  }
  reading.worker.seconds.read += watch.lap();
  if (checksums_.empty()) return;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (parts[i].to) checksums_.arrived(targets[i].buffer, targets[i].buffer_offset, {parts[i].to, parts[i].bytes});
  }
  reading.worker.seconds.decode += watch.lap();
}

/// How many bytes from the front of the target arrived; the rest is for a read, which says what is wrong.
std::uint64_t Execution::copy_mapped(const MappedRange& from, std::uint64_t offset, const Target& target,
                                     std::byte* to) {
  const std::uint64_t end = target.buffer_offset + target.length;
  std::uint64_t at = target.buffer_offset;
  const auto copy = [&](std::uint64_t until, std::uint32_t* crc) {
    const std::uint64_t done = at - target.buffer_offset;
    if (!from.copy(offset + done, to + done, static_cast<std::size_t>(until - at), crc)) return false;
    at = until;
    return true;
  };
  while (at < end) {
    const auto run = checksums_.next_run(target.buffer, at, end);
    if (!copy(run ? run->begin : end, nullptr) || !run) break;
    std::uint32_t crc = 0;
    if (!copy(run->begin + run->length, &crc)) break;
    checksums_.arrived(*run, crc);
  }
  return at - target.buffer_offset;
}

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

void describe(const Move& move, const Execution& execution, std::size_t threads, bool explain, Report& report) {
  report.read_bytes += move.plan.read_bytes;
  report.payload_bytes += move.plan.payload_bytes;
  report.read_seconds += execution.seconds().read;
  report.decode_seconds += execution.seconds().decode;
  if (move.plan.ranges.empty()) return;
  const std::string_view reader = execution.reader_name(move.plan.ranges.front().source);
  const Routes* const routes = execution.routes();
  const bool direct = routes != nullptr && routes->direct_bytes() * 2 > move.plan.read_bytes;
  const DeviceRoutes* const device = execution.device_routes();
  const std::string_view by_device = device != nullptr ? device->route(move.plan.read_bytes) : std::string_view();
  report.route = !by_device.empty()      ? by_device
                 : execution.uses_ring() ? "ring"
                 : direct                ? "direct"
                 : reader == "memory"    ? "memory"
                                         : "read";
  if (!explain) return;
  const std::string memory = !by_device.empty()      ? "device memory through " + device->how()
                             : execution.uses_ring() ? "device memory through the pinned ring"
                                                     : "host memory";
  report.why =
      core::format("{} {} into {} by {} {}", move.plan.ranges.size(), move.plan.ranges.size() == 1 ? "range" : "ranges",
                   memory, threads, threads == 1 ? "thread" : "threads");
  const bool mapped = execution.mapped_bytes() * 2 > move.plan.read_bytes;
  if (by_device.empty())
    report.why += core::format(" with {}", direct ? "direct reads" : mapped ? "copies out of a mapping" : reader);
  if (routes != nullptr) report.why += routes->why();
  if (device != nullptr) report.why += device->why(move.plan.read_bytes);
}

}  // namespace

void execute(const Move& move, const EngineOptions& options, Report& report) {
  check(move);
  Execution execution(move, options);
  const std::size_t threads = threads_for(move, options, execution.routes());
  if (threads <= 1) {
    execution.work();
  } else {
    core::parallel_for(threads, threads, [&](std::size_t) { execution.work(); });
  }
  describe(move, execution, threads, options.explain, report);
  execution.finish();
}

}  // namespace penstock::io
