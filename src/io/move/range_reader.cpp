// How one range gets to its place. `read` asks which route the range takes:
//
//   read -> read_by_host ------------> read_chunks -> read_chunk -> read_parts   pread, or a direct read
//        -> read_with_device -> (cuFile)     |             |
//                            -> read_chunks -+             +------> copy_chunk   out of a mapping
//
// A chunk is small enough that its checksum is computed while the bytes are in the processor's cache, and that a
// cancelled load stops soon. Chunks for a device are placed in a slot of the pinned ring (Staging), which is copied on
// when it is full.

#include "io/move/range_reader.h"

#include <algorithm>
#include <limits>

#include "core/stopwatch.h"
#include "io/copy/scatter.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

// Checksums are computed on pieces that are still in the second-level cache when the read returns.
constexpr std::uint64_t kChunkBytes = 256 * 1024;
// Without checksums each further call to the system is for nothing. Other sources than files may be slow, and a load
// can be cancelled between two pieces.
constexpr std::uint64_t kUncheckedChunkBytes = 8 * 1024 * 1024;
// What comes from the disk is asked for in larger ones, by more threads than there are processors: they wait, and a
// disk is at its best with several requests of these sizes.
constexpr std::uint64_t kColdChunkBytes = 1024 * 1024;
constexpr std::uint64_t kUncheckedColdChunkBytes = 4 * 1024 * 1024;
// What is copied out of a mapping is checksummed on the way; each copy costs a guard.
constexpr std::uint64_t kMappedChunkBytes = 1024 * 1024;
// What is waited for comes to the host by one read for each range (ReadCosts::piece), and to a device by halves of a
// slot of the ring.
constexpr std::uint64_t kAwaitedDeviceChunkBytes = device::PinnedRing::kSlotBytes / 2;
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

RangeReader::RangeReader(const Move& move, const EngineOptions& options)
    : move_(move),
      options_(options),
      checksums_(move.checksums),
      device_(move.buffers),
      copies_(!move.checksums.empty()) {
  if (options.reader == nullptr) {
    routes_.emplace(move.plan, move.sources, options.direct, options.mapped);
    device_routes_.emplace(move, device_, checksums_, *routes_, options);
  }
  for (const Source& source : move.sources) {
    readers_.push_back(options.reader != nullptr ? options.reader : &reader_for(*source));
    const Reader& reader = *readers_.back();
    const ReadCosts costs = reader.costs == nullptr ? ReadCosts{} : reader.costs(*source);
    // Of several sources, the one that waits longest decides how many threads there are.
    if (costs.at_once > costs_.at_once) costs_ = costs;
  }
}

/// The blocks of a long request that does not fit in place take as much, in huge pages (DirectScratch).
ReadCosts RangeReader::costs() const noexcept {
  if (costs_.waits() || !routes_ || !routes_->waits_for_disk()) return costs_;
  ReadCosts costs = kDiskCosts;
  if (reads_unchecked()) costs.request_memory += kUncheckedColdChunkBytes;
  return costs;
}

bool RangeReader::reads_in_one_call(std::size_t range) const {
  return reads_unchecked() && move_.sources[move_.plan.ranges[range].source].descriptor() >= 0;
}

bool RangeReader::waits(std::size_t range) const noexcept {
  if (!costs_.waits()) return false;
  const std::uint32_t source = move_.plan.ranges[range].source;
  auto* const costs = readers_[source]->costs;
  return costs != nullptr && costs(*move_.sources[source]).waits();
}

bool RangeReader::waits_for_disk(std::size_t range) const noexcept {
  return routes_ && (routes_->cold(range) || routes_->direct(range) != nullptr);
}

/// Chunks that come from the disk end at whole blocks of it, so that none is read twice.
std::uint64_t RangeReader::chunk_bytes(const Reading& reading, std::uint64_t offset) const {
  if (reading.copying != nullptr) return device_.empty() ? kMappedChunkBytes : kChunkBytes;
  const std::size_t range = reading.range;
  if (waits(range)) return device_.empty() ? std::numeric_limits<std::uint64_t>::max() : kAwaitedDeviceChunkBytes;
  if (!waits_for_disk(range)) return reads_in_one_call(range) ? kUncheckedChunkBytes : kChunkBytes;
  return (reads_unchecked() ? kUncheckedColdChunkBytes : kColdChunkBytes) - offset % (kChunkBytes / 2);
}

void RangeReader::read(std::size_t index, Scratch& scratch) {
  const ReadRange& range = move_.plan.ranges[index];
  const auto targets = std::span(move_.plan.targets).subspan(range.first_target, range.target_count);
  Reading reading{.range = index, .staging = Staging(device_), .scratch = scratch, .staged_from = range.offset};
  DeviceFile* const file = device_routes_ ? device_routes_->file(index) : nullptr;
  if (file != nullptr) {
    read_with_device(*file, reading, targets);
  } else {
    read_by_host(reading, targets);
  }
  // Now, and not with the next range: until then this thread may wait for its turn, and others want the slot.
  try {
    reading.staging.submit();
  } catch (const Error& error) {
    throw within(error, reading, reading.staged_from);
  }
  reading.spent().read_bytes += range.length;
}

/// The device reads what it takes of each target; the rest goes through the ring.
void RangeReader::read_with_device(DeviceFile& file, Reading& reading, std::span<const Target> targets) {
  std::uint64_t offset = move_.plan.ranges[reading.range].offset;
  for (const Target& target : targets) {
    if (target.buffer != kDiscard) {
      Target rest = target;
      const std::uint64_t done = read_by_device(file, offset, rest, reading.scratch.worker);
      rest.buffer_offset += done;
      rest.length -= done;
      read_chunks(reading, offset + done, {&rest, 1});
    }
    offset += target.length;
  }
}

Error RangeReader::within(const Error& error, const Reading& reading, std::uint64_t offset) const {
  return error.within({.path = move_.sources[move_.plan.ranges[reading.range].source].name(), .offset = offset});
}

void RangeReader::finish() const {
  checksums_.require_complete();
  device_.finish(options_.wait);
}

void RangeReader::read_by_host(Reading& reading, std::span<const Target> targets) {
  const ReadRange& range = move_.plan.ranges[reading.range];
  if (!routes_ || !routes_->mappable(reading.range) || range.length == 0)
    return read_chunks(reading, range.offset, targets);
  CachedCopies::RangeCopy copying(copies_, reading.scratch.copies, *move_.sources[range.source], range.length);
  if (options_.mapped.value_or(copies_.map_next())) copying.map(range.offset, stores(range, targets));
  if (copying.is_mapped()) reading.copying = &copying;
  read_chunks(reading, range.offset, targets);
  copying.finish();
  if (copying.is_mapped()) reading.spent().mapped_bytes += range.length;
  reading.copying = nullptr;
}

/// How the copy out of a mapping stores, which depends on the memory that it goes to. The middle of the range tells: at
/// its ends another thread may have begun a page already.
Stores RangeReader::stores(const ReadRange& range, std::span<const Target> targets) const {
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
  while (reading.scratch.worker.goes_on()) {
    const std::uint64_t length = cutter.next(chunk_bytes(reading, offset), chunk);
    if (length == 0) return;
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
  while (done < target.length && worker.goes_on()) {
    const std::uint64_t length = std::min(target.length - done, kDeviceChunkBytes);
    if (!file.read(offset + done, device_.buffer(target), target.buffer_offset + done, length)) break;
    done += length;
  }
  device_routes_->arrived(done);
  worker.spent.read_seconds += watch.lap();
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
    const std::uint64_t chunk = waits(reading.range)            ? kAwaitedDeviceChunkBytes
                                : waits_for_disk(reading.range) ? kColdChunkBytes
                                                                : kChunkBytes;
    reading.staging.make_room(static_cast<std::size_t>(chunk));
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
  if (reading.copying != nullptr) return copy_chunk(reading, offset, targets, parts);
  read_parts(reading, offset, targets, parts);
}

/// A chunk that is mapped. What cannot be copied, because the file was cut, is left to a read, which says what is
/// wrong.
void RangeReader::copy_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                             std::span<const Scatter> parts) {
  for (std::size_t i = 0; i < targets.size(); offset += targets[i++].length) {
    if (!parts[i].to) continue;
    core::Stopwatch watch;
    Target rest = targets[i];
    const std::uint64_t done = copy_mapped(*reading.copying, offset, rest, parts[i].to);
    reading.spent().read_seconds += watch.lap();
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
      direct->read(offset, parts, reading.scratch.direct);
    } else {
      readers_[from]->read(source, offset, parts);
    }
  } catch (const Error& error) {
    throw within(error, reading, offset);
  }
  reading.spent().read_seconds += watch.lap();
  // Each request is told alone, because the depth follows how the rate answers to more of them.
  if (reading.scratch.worker.has_depth()) reading.scratch.worker.arrived(bytes_in(parts));
  if (checksums_.empty()) return;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (parts[i].to) checksums_.arrived(targets[i].buffer, targets[i].buffer_offset, {parts[i].to, parts[i].bytes});
  }
  reading.spent().decode_seconds += watch.lap();
}

/// How many bytes from the front of the target arrived. Runs with a checksum are checked in the same pass.
std::uint64_t RangeReader::copy_mapped(const CachedCopies::RangeCopy& from, std::uint64_t offset, const Target& target,
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
