// A job is cut into parts, which threads take from a work queue; a part is decoded chunk by chunk into slots of the
// ring. What is in order is one part, whatever its size; all else is cut where an element ends, so that a stage never
// sees half of one:
//
//   | phase | element | element | ... | element | rest |
//   |--------- part ---------|--------- part ---------|
//   |--- chunk ---|- chunk --|--- chunk ---|- chunk --|
//
// A part spans four chunks, because the first slot of a thread's and the last one are half empty on average.

#include "io/move/ring_decode.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/counted.h"
#include "core/format.h"
#include "core/stopwatch.h"
#include "io/move/device_writes.h"
#include "io/move/work_queue.h"
#include "io/read/threads.h"

namespace penstock::io {
namespace {

constexpr std::uint64_t kPart = 4 * kDecodeChunk;

/// A run of a job that one thread decodes, from front to back.
struct DecodePart {
  const DecodeJob* job = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

void add_parts(const DecodeJob& job, std::vector<DecodePart>& parts) {
  const std::uint64_t step = job.in_order ? job.bytes : kPart;
  std::uint64_t begin = 0;
  while (job.bytes - begin > step + job.phase) {
    const std::uint64_t end = begin + step + (begin == 0 ? job.phase : 0);
    parts.push_back({&job, begin, end});
    begin = end;
  }
  parts.push_back({&job, begin, job.bytes});
}

/// How many bytes from `position` on are one chunk: whole elements, unless the part ends in one.
std::uint64_t chunk_bytes(const DecodePart& part, std::uint64_t position) {
  const std::uint64_t left = part.end - position;
  if (left <= kDecodeChunk) return left;
  return kDecodeChunk - (position + kDecodeChunk - part.job->phase) % part.job->width;
}

void decode(const DecodePart& part, const DeviceWrites& writes, const Worker& worker) {
  const DecodeJob& job = *part.job;
  Staging staging(writes);
  const std::unique_ptr<DecodeStage> stage = job.begin();
  for (std::uint64_t at = part.begin; at < part.end;) {
    if (!worker.goes_on()) return;
    const std::uint64_t length = chunk_bytes(part, at);
    staging.make_room(static_cast<std::size_t>(length));
    std::byte* const place = staging.place({job.buffer, job.offset + at, length});
    stage->fill(at, {place, static_cast<std::size_t>(length)});
    at += length;
  }
  stage->finish();
  staging.submit();
}

void work(const std::vector<DecodePart>& parts, const DeviceWrites& writes, Worker& worker) {
  while (const std::optional<WorkItem> item = worker.next()) {
    const DecodePart& part = parts[static_cast<std::size_t>(item->index)];
    const core::Stopwatch watch;
    try {
      decode(part, writes, worker);
    } catch (const Error& error) {
      throw error.within(part.job->place);
    }
    worker.spent.decode_seconds += watch.total();
  }
}

}  // namespace

void decode_in_ring(std::span<const DecodeJob> jobs, std::span<const Buffer> buffers, std::size_t threads,
                    const std::stop_token& stop, Report& report) {
  if (jobs.empty()) return;
  std::vector<DecodePart> parts;
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  for (const DecodeJob& job : jobs) {
    add_parts(job, parts);
    bytes += job.bytes;
    stored_bytes += job.stored_bytes;
  }
  const DeviceWrites writes(buffers);
  threads =
      threads_for({.parts = parts.size(), .bytes = bytes, .bytes_per_thread = Effort::kDecodedBytes}, threads).first;
  const WorkOptions options{.threads = threads, .stop = stop, .writes = &writes};
  Spent spent = work_through(parts.size(), options, [&](Worker& worker) { work(parts, writes, worker); });
  spent.read_bytes = stored_bytes;
  spent.add_to(report);
  writes.finish(true);
  if (report.route != "gds" || stored_bytes * 2 >= report.read_bytes) report.route = "ring";
  report.why += core::format("{}{} decoded in the pinned ring by {}", report.why.empty() ? "" : "; ",
                             jobs.size() == 1 ? "one storage" : core::format("{} storages", jobs.size()),
                             core::counted(threads, "thread"));
}

}  // namespace penstock::io
