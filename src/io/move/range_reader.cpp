#include "io/move/range_reader.h"

#include <algorithm>
#include <utility>

#include "core/stopwatch.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

// Checksums are computed on pieces that are still in the second-level cache when the read returns.
constexpr std::uint64_t kChunkBytes = 256 * 1024;
// What comes from the disk is asked for in larger ones, by more threads than there are processors: they wait, and a
// disk is at its best with several requests of this size.
constexpr std::uint64_t kColdChunkBytes = 1024 * 1024;
// What is copied out of a mapping is checksummed on the way; each copy costs a guard.
constexpr std::uint64_t kMappedChunkBytes = 1024 * 1024;
// How long shorter ranges take tells little of the way they went.
constexpr std::uint64_t kTellingBytes = 1024 * 1024;
// An unmapping of less is mostly the interruption of other processors, which windows that are used up share among more.
constexpr std::uint64_t kTellingMappedBytes = 24 * 1024 * 1024;
// Between two requests to a device that reads by itself the load can be cancelled.
constexpr std::uint64_t kDeviceChunkBytes = 16 * 1024 * 1024;

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

}  // namespace

void require_going_on(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
}

RangeReader::RangeReader(const Move& move, const EngineOptions& options, const std::atomic<bool>& failed)
    : move_(move),
      options_(options),
      failed_(failed),
      checksums_(move.checksums, move.sources),
      device_(move.buffers),
      trial_(!move.checksums.empty()) {
  if (options.reader == nullptr) {
    routes_.emplace(move.plan, move.sources, options.direct, options.mapped);
    device_routes_.emplace(move, device_, checksums_, *routes_, options);
  }
  for (const SourcePtr& source : move.sources) {
    readers_.push_back(options.reader != nullptr ? options.reader : &reader_for(*source));
  }
}

/// Chunks that come from the disk end at whole blocks of it, so that none is read twice.
std::uint64_t RangeReader::chunk_bytes(const Reading& reading, std::uint64_t offset) const {
  if (reading.mapped) return device_.empty() ? kMappedChunkBytes : kChunkBytes;
  const std::size_t range = reading.range;
  if (!routes_ || (!routes_->cold(range) && routes_->direct(range) == nullptr)) return kChunkBytes;
  const std::uint64_t bytes = device_.empty() ? kColdChunkBytes : kChunkBytes;
  return bytes - offset % (kChunkBytes / 2);
}

void RangeReader::read(std::size_t index, Worker& worker) {
  const Range& range = move_.plan.ranges[index];
  const auto targets = std::span(move_.plan.targets).subspan(range.first_target, range.target_count);
  DeviceFile* const file = device_routes_ ? device_routes_->file(index) : nullptr;
  Reading reading{index, Staging(device_), worker, std::nullopt, range.offset};
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
  try {
    reading.staging.submit();
  } catch (const Error& error) {
    throw within(error, reading, reading.staged_from);
  }
}

Error RangeReader::within(const Error& error, const Reading& reading, std::uint64_t offset) const {
  return error.within({.path = move_.sources[move_.plan.ranges[reading.range].source]->name(), .offset = offset});
}

void RangeReader::finish() const {
  checksums_.require_complete();
  device_.finish(options_.wait);
}

void RangeReader::read_by_host(Reading& reading, std::span<const Target> targets) {
  const Range& range = move_.plan.ranges[reading.range];
  const ByteSource& source = *move_.sources[range.source];
  const bool mappable = routes_ && routes_->mappable(reading.range) && range.length > 0;
  MappingWindow& window = reading.worker.window;
  const MappingWindow::Unmapped before = window.unmapped();
  core::Stopwatch watch;
  if (mappable && options_.mapped.value_or(trial_.map_next())) {
    reading.mapped =
        MappedRange::map(window, source, range.offset, static_cast<std::size_t>(range.length), stores(range, targets));
  }
  read_chunks(reading, range.offset, targets);
  const bool mapped = reading.mapped.has_value();
  if (mapped) require_uncut(source);
  const double seconds = watch.lap() - (window.unmapped().seconds - before.seconds);
  if (mapped) reading.worker.mapped_bytes += range.length;
  // The first range of a thread takes twice as long, whichever way it goes.
  const bool telling = std::exchange(reading.worker.begun, true) && range.length >= kTellingBytes && seconds > 0;
  if (mappable && telling) trial_.done(mapped, static_cast<double>(range.length) / seconds);
  reading.mapped.reset();
  if (mapped && telling && window.mapped() >= kTellingMappedBytes && !trial_.knows_unmapping()) window.release();
  const std::uint64_t unmapped = window.unmapped().bytes - before.bytes;
  if (unmapped > 0) trial_.unmapped(unmapped, window.unmapped().seconds - before.seconds);
}

/// By what the middle of the range goes to: at its ends others may have begun a page already.
Stores RangeReader::stores(const Range& range, std::span<const Target> targets) const {
  if (!device_.empty()) return Stores::kStreamed;
  std::uint64_t rest = range.length / 2;
  for (const Target& target : targets) {
    if (rest >= target.length) {
      rest -= target.length;
    } else if (target.buffer != kDiscard) {
      return stores_for(move_.buffers[target.buffer].data() + target.buffer_offset + rest);
    } else {
      break;
    }
  }
  return Stores::kStreamed;
}

void RangeReader::read_chunks(Reading& reading, std::uint64_t offset, std::span<const Target> targets) {
  ChunkCutter cutter(targets);
  std::vector<Target> chunk;
  while (!failed_) {
    const std::uint64_t length = cutter.next(chunk_bytes(reading, offset), chunk);
    if (length == 0) return;
    require_going_on(options_.stop);
    read_chunk(reading, offset, chunk);
    offset += length;
  }
}

/// How many bytes from the front of the target arrived.
std::uint64_t RangeReader::read_by_device(DeviceFile& file, std::uint64_t offset, const Target& target,
                                          Worker& worker) {
  if (!device_routes_->takes(target)) return 0;
  core::Stopwatch watch;
  std::uint64_t done = 0;
  while (done < target.length && !failed_) {
    require_going_on(options_.stop);
    const std::uint64_t length = std::min(target.length - done, kDeviceChunkBytes);
    if (!file.read(offset + done, device_.buffer(target), target.buffer_offset + done, length)) break;
    done += length;
  }
  device_routes_->arrived(done);
  worker.read_seconds += watch.lap();
  return done;
}

std::byte* RangeReader::place(const Target& target, Staging& staging) const {
  if (target.buffer == kDiscard) return nullptr;
  if (device_.has(target)) return staging.place(target);
  return move_.buffers[target.buffer].data() + target.buffer_offset;
}

/// For a chunk that begins at `offset`.
void RangeReader::make_room(Reading& reading, std::uint64_t offset) const {
  try {
    reading.staging.make_room(kChunkBytes);
  } catch (const Error& error) {
    throw within(error, reading, reading.staged_from);
  }
  if (reading.staging.empty()) reading.staged_from = offset;
}

void RangeReader::read_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets) {
  if (!device_.empty()) make_room(reading, offset);
  std::vector<Scatter> parts;
  parts.reserve(targets.size());
  for (const Target& target : targets) {
    parts.push_back({place(target, reading.staging), static_cast<std::size_t>(target.length)});
  }
  if (!reading.mapped) return read_parts(reading, offset, targets, parts);
  for (std::size_t i = 0; i < targets.size(); offset += targets[i++].length) {
    if (!parts[i].to) continue;
    core::Stopwatch watch;
    Target rest = targets[i];
    const std::uint64_t done = copy_mapped(*reading.mapped, offset, rest, parts[i].to);
    reading.worker.read_seconds += watch.lap();
    if (done == rest.length) continue;
    rest.buffer_offset += done;
    rest.length -= done;
    const Scatter part{parts[i].to + done, static_cast<std::size_t>(rest.length)};
    read_parts(reading, offset + done, {&rest, 1}, {&part, 1});
  }
}

void RangeReader::read_parts(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                             std::span<const Scatter> parts) {
  core::Stopwatch watch;
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
    throw within(error, reading, offset);
  }
  reading.worker.read_seconds += watch.lap();
  if (checksums_.empty()) return;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (parts[i].to) checksums_.arrived(targets[i].buffer, targets[i].buffer_offset, {parts[i].to, parts[i].bytes});
  }
  reading.worker.decode_seconds += watch.lap();
}

/// How many bytes from the front of the target arrived; the rest is for a read, which says what is wrong.
std::uint64_t RangeReader::copy_mapped(const MappedRange& from, std::uint64_t offset, const Target& target,
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

}  // namespace penstock::io
