#include "archive/ring_decode.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "core/format.h"
#include "core/task_pool.h"
#include "format/zip/inflate.h"
#include "io/copy/crc32.h"
#include "io/move/device_writes.h"
#include "ops/kernels.h"
#include "penstock/error.h"

namespace penstock::archive {
namespace {

/// What a slot of the ring always has room for; a multiple of every unit's width.
constexpr std::uint64_t kChunk = device::PinnedRing::kSlotBytes / 2;
/// Stored bytes that one thread takes on at once.
constexpr std::uint64_t kPart = 4 * kChunk;
constexpr std::size_t kMaxThreads = 16;

/// A run of a storage that one thread decodes, from front to back.
struct Part {
  const RingJob* job = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

bool is_deflated(const RingJob& job) { return job.storage->compression != Compression::kNone; }

/// What depends on the bytes before it (a deflated stream, a checksum) is one part.
void add_parts(const RingJob& job, std::vector<Part>& parts) {
  const std::uint64_t bytes = job.storage->nbytes;
  const std::uint64_t step = is_deflated(job) || job.verify ? bytes : kPart;
  std::uint64_t begin = 0;
  while (bytes - begin > step + job.swap_phase) {
    const std::uint64_t end = begin + step + (begin == 0 ? job.swap_phase : 0);
    parts.push_back({&job, begin, end});
    begin = end;
  }
  parts.push_back({&job, begin, bytes});
}

/// Where the bytes of a part come from: the file itself, or a stream in it.
class Bytes {
 public:
  explicit Bytes(const RingJob& job) : job_(job) {
    if (!is_deflated(job)) return;
    const StorageEntry& storage = *job.storage;
    if (storage.nbytes > kChunk || storage.stored_bytes > kChunk) {
      stream_.emplace(*job.source, storage.offset, storage.stored_bytes, storage.name);
    } else {
      // The fastest way wants all of the stream, which is small.
      small_.resize(static_cast<std::size_t>(storage.stored_bytes));
      job.source->read(storage.offset, small_);
    }
  }

  /// Fills `out` with what lies from `position` on; positions of a stream go up without gaps.
  void read(std::uint64_t position, std::span<std::byte> out) {
    const StorageEntry& storage = *job_.storage;
    if (!is_deflated(job_)) {
      job_.source->read(storage.offset + position, out);
    } else if (stream_) {
      stream_->fill(out, storage.nbytes);
    } else {
      format::inflate(small_, out, job_.source->name(), storage.name);
    }
  }
  void require_end() {
    if (stream_) stream_->require_end(job_.storage->nbytes);
  }

 private:
  const RingJob& job_;
  std::optional<format::InflateStream> stream_;
  std::vector<std::byte> small_;
};

/// Reverses the units in `bytes`, which lie at `position` of their storage and end with a whole unit or with it.
void swap_units(const RingJob& job, std::uint64_t position, std::span<std::byte> bytes) {
  if (job.swap_width == 1) return;
  const std::uint64_t before = position < job.swap_phase ? job.swap_phase - position : 0;
  if (before >= bytes.size()) return;
  const auto units = bytes.subspan(static_cast<std::size_t>(before));
  ops::swap_bytes(units.first(units.size() / job.swap_width * job.swap_width), job.swap_width);
}

/// How many bytes from `position` on go into one chunk, which holds whole units unless the part ends in one.
std::uint64_t chunk_bytes(const Part& part, std::uint64_t position) {
  const std::uint64_t left = part.end - position;
  if (left <= kChunk) return left;
  return kChunk - (position + kChunk - part.job->swap_phase) % part.job->swap_width;
}

void decode(const Part& part, const io::DeviceWrites& writes, const std::stop_token& stop) {
  const RingJob& job = *part.job;
  io::Staging staging(writes);
  Bytes bytes(job);
  std::uint32_t crc = 0;
  for (std::uint64_t at = part.begin; at < part.end;) {
    if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
    const std::uint64_t length = chunk_bytes(part, at);
    staging.make_room(static_cast<std::size_t>(length));
    std::byte* const place = staging.place({job.buffer, job.offset + at, length});
    const std::span<std::byte> chunk(place, static_cast<std::size_t>(length));
    bytes.read(at, chunk);
    if (job.verify) crc = io::crc32(crc, chunk);
    swap_units(job, at, chunk);
    at += length;
  }
  bytes.require_end();
  if (job.verify) {
    const StorageEntry& storage = *job.storage;
    io::require_crc(crc, *storage.crc32, storage.nbytes, {job.source->name(), storage.offset, storage.name});
  }
  staging.submit();
}

}  // namespace

void decode_in_ring(std::span<const RingJob> jobs, std::span<const Buffer> buffers, const LoadOptions& options,
                    Report& report) {
  if (jobs.empty()) return;
  const auto started = std::chrono::steady_clock::now();
  std::vector<Part> parts;
  std::uint64_t bytes = 0;
  for (const RingJob& job : jobs) {
    add_parts(job, parts);
    bytes += job.storage->stored_bytes;
  }
  report.read_bytes += bytes;
  const io::DeviceWrites writes(buffers);
  const std::size_t wanted = options.threads != 0 ? options.threads : std::min(kMaxThreads, core::usable_cpus());
  const std::size_t threads = std::min(wanted, parts.size());
  try {
    core::parallel_for(parts.size(), threads, [&](std::size_t i) {
      const RingJob& job = *parts[i].job;
      try {
        decode(parts[i], writes, options.stop);
      } catch (const Error& error) {
        throw error.within({job.source->name(), job.storage->offset, job.storage->name});
      }
    });
  } catch (...) {
    writes.settle();
    throw;
  }
  writes.finish(true);
  if (report.route != "gds" || bytes * 2 >= report.read_bytes) report.route = "ring";
  report.why += core::format("{}{} decoded in the pinned ring by {} {}", report.why.empty() ? "" : "; ",
                             jobs.size() == 1 ? "one storage" : core::format("{} storages", jobs.size()), threads,
                             threads == 1 ? "thread" : "threads");
  report.decode_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

}  // namespace penstock::archive
