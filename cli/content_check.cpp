#include "content_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "format/format.h"
#include "format/pt/zip.h"
#include "format/zip/inflate.h"
#include "format/zip/kind.h"
#include "format/zip/reader.h"
#include "io/copy/crc32.h"

namespace penstock::cli {
namespace {

using format::ZipEntry;
using format::ZipKind;
using Seen = std::function<void(std::uint64_t)>;

/// Reading such pieces is as quick as reading larger ones, and they stay in a processor's cache.
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

class ContentCheck {
 public:
  ContentCheck(const ByteSource& source, const Seen& seen)
      : source_(source), seen_(seen), piece_(static_cast<std::size_t>(std::min(kPieceBytes, source.size()))) {}

  std::uint64_t run() {
    const ZipKind kind = zip_kind();
    if (kind == ZipKind::kNone) {
      crc_of(0, source_.size());
      return 0;
    }
    const format::ZipDirectory directory = format::read_zip_directory(source_);
    for (const ZipEntry& member : directory.entries) check(member, kind);
    crc_of(source_.size() - directory.trailing_bytes, directory.trailing_bytes);
    return directory.trailing_bytes;
  }

 private:
  ZipKind zip_kind() const {
    std::array<std::byte, format::kSniffBytes> head{};
    const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), source_.size()));
    source_.read(0, std::span(head).first(known));
    return format::sniff_zip(std::span(head).first(known), source_);
  }

  void check(const ZipEntry& member, ZipKind kind) {
    const ErrorContext where{source_.name(), member.data_offset, format::member_name(member)};
    const auto recorded = kind == ZipKind::kTorch ? format::recorded_crc(member, true) : std::optional(member.crc32);
    try {
      const bool stored = member.method == format::kZipStored;
      const std::uint32_t crc = stored ? crc_of(member.data_offset, member.size) : crc_of_inflated(member);
      if (recorded) io::require_crc(crc, *recorded, member.size, where);
    } catch (const Error& error) {
      throw error.within(where);
    }
  }

  std::uint32_t crc_of(std::uint64_t offset, std::uint64_t bytes) {
    std::uint64_t at = offset;
    return crc_of_pieces(bytes, [&](std::span<std::byte> piece) {
      source_.read(at, piece);
      at += piece.size();
    });
  }

  std::uint32_t crc_of_inflated(const ZipEntry& member) {
    format::InflateStream stream(source_, member.data_offset, member.compressed_size, member.name);
    const auto crc = crc_of_pieces(member.size, [&](std::span<std::byte> piece) { stream.fill(piece, member.size); });
    stream.require_end(member.size);
    return crc;
  }

  template <class Fill>
  std::uint32_t crc_of_pieces(std::uint64_t bytes, const Fill& fill) {
    std::uint32_t crc = 0;
    while (bytes > 0) {
      const auto piece =
          std::span(piece_).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece_.size())));
      fill(piece);
      crc = io::crc32(crc, piece);
      bytes -= piece.size();
      if (seen_) seen_(piece.size());
    }
    return crc;
  }

  const ByteSource& source_;
  const Seen& seen_;
  std::vector<std::byte> piece_;
};

}  // namespace

std::uint64_t check_content(const ByteSource& source, const Seen& seen) { return ContentCheck(source, seen).run(); }

}  // namespace penstock::cli
