#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>

#include "device/pinned_ring.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "penstock/report.h"

namespace penstock::io {

/// The most bytes that a stage makes at once: what a slot of the ring always has room for. A multiple of every
/// element's width.
inline constexpr std::uint64_t kDecodeChunk = device::PinnedRing::kSlotBytes / 2;

/// Makes values of stored bytes on their way to a device. io knows neither formats nor operations on elements, so
/// stages (inflating, swapping bytes) are given from above. Of one thread.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  /// Fills `chunk` with the values that lie at `position`; positions go up. kCorrupt, and what reading gives.
  virtual void fill(std::uint64_t position, std::span<std::byte> chunk) = 0;
  /// After the last chunk: says what only the end tells, of checksums and of streams that go on. kChecksum, kCorrupt.
  virtual void finish() {}
};

/// A run of a buffer that a stage makes.
struct DecodeJob {
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;  ///< in the buffer
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;  ///< read for it
  /// A chunk ends at a whole element, or with the job: elements have `width` bytes, and `phase` bytes come before the
  /// first one.
  std::size_t width = 1;
  std::uint64_t phase = 0;
  bool in_order =
      false;  ///< bytes depend on those before them, so one stage makes all; else any part can be made alone
  std::function<std::unique_ptr<DecodeStage>()> begin = {};  ///< a stage for a part of the job; from any thread
  ErrorContext place = {};                                   ///< for errors
};

/// Decodes in the pinned ring, chunk by chunk, so that it takes no host memory but the ring's and what stages take. All
/// copies are done on return. Adds to the report, whose route becomes "ring" unless most bytes came by "gds". Errors of
/// stages, kCancelled.
void decode_in_ring(std::span<const DecodeJob> jobs, std::span<const Buffer> buffers, std::size_t threads,
                    const std::stop_token& stop, Report& report);

}  // namespace penstock::io
