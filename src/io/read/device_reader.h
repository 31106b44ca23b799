#pragma once

// The table of readers that fill a device's memory by themselves. io/readers.cpp has its rows; io/move/device_routes.h
// decides when they are used.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// A source's file that a device reads by itself, without host memory. Thread-safe. It knows nothing of streams: no
/// other work may use the memory while it is read into.
class DeviceFile {
 public:
  virtual ~DeviceFile() = default;
  /// Fills [at, at + bytes) of `into`, which is device memory, with the bytes at `offset`, and waits for them. False
  /// when they did not come, because of an error or a file that ends early. The memory is then undefined, refusal()
  /// says why, and no other read of this file is tried. kDeviceFailed, kNoDevice with path and offset.
  virtual bool read(std::uint64_t offset, const Buffer& into, std::size_t at, std::size_t bytes) = 0;
  /// Why a read was refused, as part of a sentence; empty when none was.
  virtual std::string refusal() const = 0;
  /// How it reads, for reports: "direct, nvidia-fs 2.17".
  virtual std::string_view how() const noexcept = 0;
};

/// A row of the table of readers that fill device memory without the pinned ring.
struct DeviceReader {
  std::string_view name;  ///< of the route
  std::string_view by;    ///< for sentences: "cuFile"
  /// Null when it cannot read the source for `device`, or is no better than the ring there and the user has not `asked`
  /// for it; `why_not` is then the reason, as part of a sentence. `source` must outlive the result.
  std::unique_ptr<DeviceFile> (*open)(const ByteSource& source, Device device, bool asked, std::string& why_not);
};

/// The table, best first. Files that none of them reads go through the ring.
std::span<const DeviceReader> device_readers() noexcept;

}  // namespace penstock::io
