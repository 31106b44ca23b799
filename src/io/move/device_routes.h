#pragma once

// Chooses, for bytes on their way to a device, between cuFile and the ring of pinned memory. Its twin for host memory
// is routes.h.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/move/checksums.h"
#include "io/move/device_writes.h"
#include "io/move/move.h"
#include "io/move/routes.h"
#include "io/read/device_reader.h"

namespace penstock::io {

/// The setting PENSTOCK_GDS: true for "on", false for "off", nothing for "auto" and when it is not set.
/// kInvalidArgument for other text.
std::optional<bool> gds_setting();

/// Decides which parts of a move the device reads from the disk by itself (cuFile), and which go through the ring of
/// pinned memory. RangeReader asks for each range and each target. Thread-safe.
class DeviceRoutes {
 public:
  /// Opens the files and waits until their device memory may be written. Does nothing for plans without device memory.
  /// `writes` and `checksums` must outlive this.
  DeviceRoutes(const Move& move, const DeviceWrites& writes, const Checksums& checksums, const Routes& routes,
               const EngineOptions& options);

  /// The file through which the device reads those targets of `range` that `takes` accepts. Null when the whole range
  /// goes through the ring.
  DeviceFile* file(std::size_t range) const noexcept { return ways_.empty() ? nullptr : ways_[range]; }
  /// Whether the device reads this target by itself.
  bool takes(const Target& target) const;
  /// The device has read `bytes` more bytes by itself.
  void arrived(std::uint64_t bytes) noexcept { arrived_ += bytes; }

  /// The name of the route if more than half of the bytes took it; else empty.
  std::string_view route(std::uint64_t read_bytes) const noexcept;
  /// How the device reads: "cuFile (direct, nvidia-fs 2.17)".
  std::string how() const;
  /// What went through the ring and why, as the end of a sentence; empty when there is nothing to say.
  std::string why(std::uint64_t read_bytes) const;

 private:
  bool is_large(const Target& target) const;
  bool considers(const Move& move, const ReadRange& range);
  DeviceFile* file_of(const Move& move, const ReadRange& range, std::span<const DeviceReader> readers, bool asked);

  const DeviceWrites& writes_;
  const Checksums& checksums_;
  const DeviceReader* reader_ = nullptr;  ///< whose files are in files_
  std::vector<DeviceFile*> ways_;
  std::vector<std::unique_ptr<DeviceFile>> files_;  ///< of each source
  std::vector<bool> tried_;
  std::string why_not_;  ///< the first reason that something was not read by this route
  std::atomic<std::uint64_t> arrived_{0};
};

}  // namespace penstock::io
