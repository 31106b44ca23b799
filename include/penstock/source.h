#pragma once

/// Where bytes come from: a file, memory, or a class of your own derived from ByteSource. Programs that load files give
/// paths to `load` and `open` and need nothing from here; `memory_source` is for bytes that are in memory already.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "penstock/buffer.h"

namespace penstock {

/// Tells one version of a file from another. A write changes `modified`, in steps of the file system's clock.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

/// The bytes of a file, wherever they are. Their number never changes; any threads may read at any offset at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Path or description, as errors name it.
  virtual const std::string& name() const noexcept = 0;
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `into` from `offset`. kTruncated when the source ends before, kIo with the system's text otherwise.
  virtual void read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  /// An open descriptor to read from, or -1.
  virtual int descriptor() const noexcept { return -1; }
  /// The version of the file that was opened. After loads and loaders have read, they compare it with the file of
  /// `descriptor`, and give kChanged when the file was written to. Nothing: they do not compare.
  virtual std::optional<FileVersion> version() const noexcept { return {}; }
  /// The content, when it is in memory already (memory sources); else an empty buffer.
  virtual Buffer memory() const { return {}; }
};

using SourcePtr = std::shared_ptr<const ByteSource>;

/// Opens `location`: a path, or `scheme:...` of a source in the table. A folder is kIsDirectory, a missing file
/// kNotFound, a FIFO or device kUnsupported. The descriptor stays open while the source lives.
SourcePtr open_source(std::string_view location);
/// Bytes in memory; the buffer is shared, not copied.
SourcePtr memory_source(Buffer bytes, std::string name = "<memory>");

}  // namespace penstock
