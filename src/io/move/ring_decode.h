#pragma once

// Values that are made of stored bytes (inflated, swapped, converted) on their way to a device, without host memory of
// their size. The engine moves bytes as they are; this is for those that it cannot.

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

/// The most bytes that a stage makes at once: a slot of the ring always has room for them. A multiple of every
/// element's width.
inline constexpr std::uint64_t kDecodeChunk = device::PinnedRing::kSlotBytes / 2;

/// Makes values of stored bytes on their way to a device, such as inflated or byte-swapped ones. io knows neither
/// formats nor operations on elements, so the layers above define the stages. Used by one thread.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  /// Fills `chunk` with the values that lie at `position`. Positions only grow. kCorrupt, and the errors of reading.
  virtual void fill(std::uint64_t position, std::span<std::byte> chunk) = 0;
  /// Called after the last chunk: kChecksum for a wrong checksum, kCorrupt for a stream that goes on.
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
  /// Bytes depend on those before them, so that one stage makes all of them. Otherwise any part can be made alone.
  bool in_order = false;
  std::function<std::unique_ptr<DecodeStage>()> begin = {};  ///< a stage for a part of the job; from any thread
  ErrorContext place = {};                                   ///< for errors
};

/// Decodes in the pinned ring, chunk by chunk, so that only the ring and the stages take host memory. All copies are
/// done on return. Adds to the report; its route becomes "ring" unless most bytes came by "gds". Errors of stages,
/// kCancelled.
void decode_in_ring(std::span<const DecodeJob> jobs, std::span<const Buffer> buffers, std::size_t threads,
                    const std::stop_token& stop, Report& report);

}  // namespace penstock::io
