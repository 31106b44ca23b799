#pragma once

// Writes the zip container of `.npz` and `.pt` front to back, so that the sink need not seek. docs/formats/zip.md
// describes the bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/zip/inflate.h"
#include "io/file/atomic_file.h"

namespace penstock::format {

/// Whose archives to imitate.
enum class ZipStyle : std::uint8_t {
  kNumpy,  ///< sizes and CRC in the local header, a date, zip64 where needed
  kTorch,  ///< sizes and CRC after the data, no date, data aligned by an `FB` extra field, zip64 end records always
};

/// One archive. `add` members in order, then `finish`, once. Not thread-safe. The sink must outlive it. Errors are the
/// sink's, and kInvalidArgument for a second member of one name or a name that read_zip_directory would refuse.
class ZipWriter {
 public:
  /// `alignment` of the members' data, for kTorch: a power of two from 1 to 32768.
  ZipWriter(io::ByteSink& sink, ZipStyle style, std::size_t alignment = 64);

  /// Throws the error that a member of this name would. Writes nothing.
  void check(std::string_view name) const;
  /// A stored member: the concatenation of `parts`.
  void add(std::string_view name, std::span<const std::span<const std::byte>> parts);
  void add(std::string_view name, std::span<const std::byte> data) { add(name, std::span(&data, 1)); }
  void add_text(std::string_view name, std::string_view text) { add(name, std::as_bytes(std::span(text))); }
  /// A deflated member (level 6), compressed on the way: sizes and CRC follow the data.
  void add_deflated(std::string_view name, std::span<const std::span<const std::byte>> parts);

  /// A member in pieces, stored or deflated: `begin`, `write` until there are `size` bytes, `end`. Its CRC follows the
  /// data.
  void begin(std::string_view name, std::uint64_t size, bool deflated = false);
  void write(std::span<const std::byte> bytes);
  void end();

  /// Writes the central directory and the end records.
  void finish();

 private:
  struct Member {
    std::string_view name;
    std::uint64_t header_offset = 0;
    std::uint64_t compressed_size = 0;
    std::uint64_t size = 0;
    std::uint32_t crc32 = 0;
    std::uint16_t method = 0;
    std::uint16_t flags = 0;
  };

  Member& start(std::string_view name);
  void write_local_header(const Member& member);
  void write_descriptor(const Member& member);
  void write_central_header(const Member& member);
  void write_end64(std::uint64_t offset, std::uint64_t end);
  void flush();
  static bool has_wide_sizes(const Member& member) noexcept;
  std::uint16_t version_of(bool wide) const noexcept;

  io::ByteSink& sink_;
  ZipStyle style_;
  std::size_t alignment_;
  std::uint64_t base_;
  std::set<std::string, std::less<>> names_;  ///< what Member::name views
  std::vector<Member> members_;
  std::uint64_t data_begin_ = 0;            ///< of the member that is being written
  std::unique_ptr<DeflateStream> deflate_;  ///< of that member, where it is deflated
  std::string record_;
};

/// The member that was begun, as a sink.
class ZipMemberSink final : public io::ByteSink {
 public:
  explicit ZipMemberSink(ZipWriter& zip) : zip_(zip) {}
  void write(std::span<const std::byte> bytes) override {
    zip_.write(bytes);
    position_ += bytes.size();
  }
  std::uint64_t position() const noexcept override { return position_; }

 private:
  ZipWriter& zip_;
  std::uint64_t position_ = 0;
};

}  // namespace penstock::format
