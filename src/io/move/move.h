#pragma once

// What the engine is asked for: a move and how to do it. Its parts (routes, checksums, the queue) see this and not the
// engine.

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

/// Work on host memory after its bytes arrived (inflate, byte swap). It runs on a reading thread, as soon as all ranges
/// of the plan that fill its buffers are done, and must be independent of other steps.
struct Step {
  std::vector<std::uint32_t> buffers;
  std::function<void()> run;
};

/// Everything that is read at once: the plan, what it reads from and to, and the work on what arrives.
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
  const Reader* reader = nullptr;  ///< must be usable for every source; null: the best for each
  /// Read past the page cache (true) or through it (false); unset: decided by what is cached. Ignored with `reader`.
  std::optional<bool> direct = {};
  /// Copy cached bytes out of a mapping (true) or by a read (false); unset: what is faster. Ignored with `reader`.
  std::optional<bool> mapped = {};
  /// Read large pieces from the disk to a device without host memory, by GPUDirect Storage. True: also cached bytes,
  /// and also where cuFile itself copies by the processor. False: never. Unset: as PENSTOCK_GDS says; by default where
  /// cuFile is direct and the bytes are not cached. Ignored with `reader`.
  std::optional<bool> gds = {};
  const DeviceReader* device_reader = nullptr;  ///< who does that; null: the first of the table that can
  bool explain = true;                          ///< fill in the report's `why`: costs as much as planning a small read
  bool wait = true;  ///< for copies to devices; otherwise only the current streams of the devices wait
};

}  // namespace penstock::io
