// The reader of sources of the program's own whose reads wait: a class that asks a store, or a file of another
// library's file system in Python. A read of a load is a thread of its queue. Others ask for several runs at once, each
// of which gets a thread here: a thread costs some ten microseconds, and what is waited for takes longer.

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "core/stop_scope.h"
#include "core/task_pool.h"
#include "io/copy/scatter.h"
#include "io/read/joined_runs.h"
#include "io/read/reader_rows.h"
#include "io/read/threads.h"
#include "io/source/own_read.h"
#include "penstock/buffer.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

/// As those of a server, whose answers take as long; reads may hold a copy of what they bring.
constexpr ReadCosts kWaitingCosts{.least_gap = std::uint64_t{4} << 10,
                                  .most_gap = std::uint64_t{1} << 20,
                                  .piece = std::uint64_t{8} << 20,
                                  .at_once = 16,
                                  .request_memory = std::uint64_t{8} << 20};

struct WaitingRead {
  const ByteSource* source = nullptr;
  JoinedRun run = {};
};

void add_reads(const ByteSource& source, std::span<const SourceRun> runs, std::vector<WaitingRead>& out) {
  for (JoinedRun& run : joined_runs(source, runs, kWaitingCosts, kWaitingCosts.piece)) {
    out.push_back({&source, std::move(run)});
  }
}

void read_all(const std::vector<WaitingRead>& reads) {
  // A stop is known to the caller's thread alone, which takes its share of the reads.
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> stopped{false};
  const auto read = [&](std::size_t index) {
    if (std::this_thread::get_id() == caller && core::StopScope::stop_requested()) stopped = true;
    if (stopped) throw Error(ErrorCode::kCancelled, "the read was cancelled before it was complete");
    waiting_read(*reads[index].source, reads[index].run.offset, reads[index].run.parts);
  };
  const Threads threads = threads_for({.parts = reads.size(), .costs = kWaitingCosts}, 0);
  core::parallel_for(reads.size(), threads.first, read);
}

}  // namespace

/// One read, whatever the number of parts: a further one takes longer than a copy.
void waiting_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  const std::uint64_t bytes = require_inside(source, offset, parts);
  if (parts.size() < 2) return source_read(source, offset, parts);
  const Buffer all = Buffer::allocate(static_cast<std::size_t>(bytes));
  read_own(source, offset, {all.data(), all.size()});
  fill_parts(parts, all.data());
}

bool waiting_usable(const ByteSource& source) {
  return source.waits() && source.descriptor() < 0 && !memory_of(source);
}

ReadCosts waiting_costs(const ByteSource& /*source*/) noexcept { return kWaitingCosts; }

void waiting_read_runs(const ByteSource& source, std::span<const SourceRun> runs) {
  std::vector<WaitingRead> reads;
  add_reads(source, runs, reads);
  read_all(reads);
}

void read_waiting(std::span<const SourceRuns> sources) {
  std::vector<WaitingRead> reads;
  for (const SourceRuns& one : sources) add_reads(*one.source, one.runs, reads);
  read_all(reads);
}

}  // namespace penstock::io
