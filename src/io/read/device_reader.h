#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// A source's file as a device reads it by itself, past the host's memory. Thread-safe. Nothing of it knows of streams:
/// memory must not be in use by any work when it is read into.
class DeviceFile {
 public:
  virtual ~DeviceFile() = default;
  /// Fills [at, at + bytes) of `into`, device memory, with what lies at `offset`, and returns when it is there. False
  /// when something went otherwise than expected: an error, a file that ends early. The bytes there are then undefined,
  /// refusal() says why, and no other read of this file is tried. kDeviceFailed, kNoDevice with path and offset.
  virtual bool read(std::uint64_t offset, const Buffer& into, std::size_t at, std::size_t bytes) = 0;
  /// Why a read was turned down, as part of a sentence; empty when none was.
  virtual std::string refusal() const = 0;
  /// The way that it takes, for reports: "direct, nvidia-fs 2.17".
  virtual std::string_view how() const noexcept = 0;
};

/// A row of the table of what reads files into device memory without the pinned ring.
struct DeviceReader {
  std::string_view name;  ///< of the route
  std::string_view by;    ///< for sentences: "cuFile"
  /// Null, and the reason as part of a sentence in `why_not`, where it cannot read the source for `device`, or is no
  /// better there than the ring and not `asked` for. `source` must outlive the result.
  std::unique_ptr<DeviceFile> (*open)(const ByteSource& source, Device device, bool asked, std::string& why_not);
};

/// The table, best first; what none of them reads goes through the ring.
std::span<const DeviceReader> device_readers() noexcept;

}  // namespace penstock::io
