#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "penstock/buffer.h"
#include "penstock/load.h"

namespace penstock::archive {

/// A storage whose stored bytes are not its values yet, on its way to memory of a device.
struct RingJob {
  const StorageEntry* storage = nullptr;  ///< stored or deflated; not resident
  const ByteSource* source = nullptr;
  std::uint32_t buffer = 0;  ///< which of the buffers, and where in it
  std::uint64_t offset = 0;
  /// Bytes of each unit whose order is reversed, 1 for none, and how many bytes there are before the first whole unit.
  std::size_t swap_width = 1;
  std::uint64_t swap_phase = 0;
  bool verify = false;  ///< the storage's CRC, which must be recorded
};

/// Inflates and swaps in the pinned ring, a piece at a time, so that it takes no host memory but the ring's and a few
/// megabytes a thread. All copies are done on return. Adds to the report, whose route becomes "ring" but where
/// most bytes came by "gds". kCorrupt,
/// kTruncated, kChecksum, kCancelled.
void decode_in_ring(std::span<const RingJob> jobs, std::span<const Buffer> buffers, const LoadOptions& options,
                    Report& report);

}  // namespace penstock::archive
