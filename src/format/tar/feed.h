#pragma once

// An archive that comes from front to back and cannot be read anywhere else: a pipe, or a compressed file.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "format/tar/bytes.h"

namespace penstock::format {

/// Fills the beginning of what it is given, and says with how many bytes: 0 at the end alone.
using ReadOn = std::function<std::size_t(std::span<std::byte>)>;

/// Bytes as they come. Keeps all from the last `forget` on, so that a sample which has been walked over is still there.
class TarFeed final : public TarBytes {
 public:
  /// `path` is the archive's, for errors. `chunk`: how much is read at once, behind the first reads, which are smaller
  /// because an archive may be.
  TarFeed(ReadOn read, std::string path, std::size_t chunk)
      : read_(std::move(read)), path_(std::move(path)), chunk_(chunk) {}

  /// kLimit where more than 4 GiB would have to be kept.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t count) override;
  std::uint64_t size() const noexcept override { return end_; }
  void forget(std::uint64_t offset) override;

 private:
  std::uint64_t held_end() const noexcept { return begin_ + (held_.size() - first_); }
  bool read_more();

  ReadOn read_;
  std::string path_;
  std::size_t chunk_;
  std::size_t grown_ = std::size_t{32} << 10;  ///< how much is read next, up to `chunk_`
  std::vector<std::byte> held_;
  std::size_t first_ = 0;     ///< in `held_`: of the byte at `begin_`
  std::uint64_t begin_ = 0;   ///< of what is kept
  std::uint64_t wanted_ = 0;  ///< nobody asks for bytes before it, which may still have to come
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();
};

/// What compressed bytes begin with.
enum class Packing : std::uint8_t { kNone, kGzip, kZstd, kOther };
Packing packing_of(std::span<const std::byte> head) noexcept;

/// The bytes that `read` gives, unpacked: gzip (several streams one behind the other too), and zstd where the system
/// has its library. kUnsupported for others; kCorrupt and kTruncated for what is damaged. `path` is for errors.
ReadOn unpacked(ReadOn read, Packing packing, const std::string& path);

/// What one member unpacks to, which is to be gzip. kLimit beyond `most` bytes; the errors of `unpacked`.
std::vector<std::byte> unpack_member(std::span<const std::byte> content, std::size_t most, const std::string& path);
/// The content as gzip, without a time in it.
std::string pack_member(std::string_view content);

}  // namespace penstock::format
