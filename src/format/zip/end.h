#pragma once

// The end of a zip archive: where its central directory lies. For reader.cpp alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.h"
#include "io/read/read_ahead.h"
#include "io/read/read_costs.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::format {

// What a zip archive may ask for, which both parts of its reader hold it to: the end record and the directory.

/// Budgets against hostile archives; beyond them kLimit.
struct ZipLimits {
  std::uint64_t max_entries = std::uint64_t{1} << 24;
  std::uint64_t max_directory_bytes = std::uint64_t{1} << 30;
  /// Of all members together, after inflating. Members whose sizes exceed what deflate can do are refused anyway.
  std::uint64_t max_inflated_bytes = std::uint64_t{1} << 44;
  /// No limit: how much of the front of each member the format looks at, which is read along with the members' headers
  /// where they are asked for at once.
  std::uint64_t front_bytes = 0;
};

/// An archive by file offset: all of it in memory, or a window that moves over a source.
class ZipBytes {
 public:
  ZipBytes(std::span<const std::byte> file, std::string_view path) : held_(file), size_(file.size()), path_(path) {}
  explicit ZipBytes(const ByteSource& source) : size_(source.size()), path_(source.name()), source_(&source) {}

  std::uint64_t size() const noexcept { return size_; }
  /// Whether these bytes are in memory now.
  bool has(std::uint64_t offset, std::uint64_t length) const noexcept {
    return offset >= base_ && core::range_fits(offset - base_, length, held_.size());
  }
  /// The bytes at [offset, offset + length), which must lie in the archive; valid until the next call. `ahead` says how
  /// much, from `offset` on, will be wanted soon.
  const std::byte* at(std::uint64_t offset, std::uint64_t length, std::uint64_t ahead = 0) {
    if (!has(offset, length)) fill(offset, std::max(length, std::min(ahead, size_ - offset)));
    return held_.data() + (offset - base_);
  }
  /// Reads pieces in order ahead, at once, where the archive lies on a server and is being opened; whether it does.
  bool read_ahead(std::span<const io::Extent> pieces) { return source_ != nullptr && io::read_ahead(*source_, pieces); }
  /// Whether pieces are worth reading ahead.
  bool waits() const { return source_ != nullptr && io::costs_of(*source_).waits(); }
  /// A copy of these bytes, which must lie in the archive.
  std::vector<std::byte> copy(std::uint64_t offset, std::uint64_t length);

  [[noreturn]] void fail(ErrorCode code, std::string message, std::uint64_t offset, std::string_view member = {}) const;

 private:
  void fill(std::uint64_t offset, std::uint64_t length);

  std::span<const std::byte> held_;
  std::uint64_t base_ = 0;
  std::uint64_t size_;
  std::string_view path_;
  const ByteSource* source_ = nullptr;
  std::vector<std::byte> buffer_;
};

/// Where the central directory lies.
struct ZipPlace {
  std::uint64_t count = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t trailing_bytes = 0;  ///< behind the end record and its comment
};

/// Reads the end record and, when there is one, the zip64 end record before it; they must agree, and the directory they
/// name must end where they begin.
ZipPlace find_zip_directory(ZipBytes& archive, const ZipLimits& limits);

}  // namespace penstock::format
