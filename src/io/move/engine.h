#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "io/copy/record_check.h"
#include "io/move/plan.h"
#include "io/read/device_reader.h"
#include "io/read/reader.h"
#include "penstock/buffer.h"
#include "penstock/report.h"
#include "penstock/source.h"

namespace penstock::io {

/// A record that the plan reads to [buffer_offset, + length) of a buffer, checked while the bytes are hot. The plan
/// must read that whole run from one contiguous run of the source. Bytes of the record that lie in front of the run
/// were given to `check` already.
struct Checksum {
  std::uint32_t buffer = 0;
  std::uint64_t buffer_offset = 0;
  std::uint64_t length = 0;
  RecordCheck check;  ///< a wanted one
};

/// Work to do on host memory after its bytes arrived (inflate, byte swap): runs once `ranges` of the plan that touch
/// `buffer` are all done. Called on a reading thread; must be independent of other steps.
struct Step {
  std::vector<std::uint32_t> buffers;  ///< must have arrived
  std::function<void()> run;
};

struct Move {
  Plan plan;
  std::span<const Source> sources;
  std::span<const Buffer> buffers;
  std::vector<Checksum> checksums;
  std::vector<Step> steps;
};

struct EngineOptions {
  std::size_t threads = 0;         ///< 0: chosen from the bytes to read and the processors
  std::stop_token stop = {};       ///< kCancelled soon after it is set
  const Reader* reader = nullptr;  ///< one that is usable for every source; null: the best for each
  /// Read past the page cache or through it; unset: by what is in it. Only without `reader`.
  std::optional<bool> direct = {};
  /// Copy what is not read past the page cache out of a mapping, or have the system copy it; unset: what is faster for
  /// the bytes and their file. Only without `reader`.
  std::optional<bool> mapped = {};
  /// Large pieces from the disk to a device without the host's memory, by GPUDirect Storage: true for what is cached,
  /// and through the library's own copies, too; false never; unset: as PENSTOCK_GDS says, where it is direct and the
  /// bytes are not cached. Only without `reader`.
  std::optional<bool> gds = {};
  const DeviceReader* device_reader = nullptr;  ///< the one that does it; null: the first of the table that can
  bool explain = true;                          ///< in the report's `why`, which costs as much as planning a small read
  bool wait = true;  ///< for copies to devices; otherwise only the current streams of the devices wait
};

/// Runs a move: ranges over threads, each into its final memory; when that lies on a device, through the pinned ring or
/// by the device itself (io/move/device_routes.h).
/// Steps work on host memory. On error everything in flight is finished or dropped
/// before the first error is rethrown, with the source's path. Adds bytes and seconds to `report`.
void execute(const Move& move, const EngineOptions& options, Report& report);

}  // namespace penstock::io
