#include "cli/content_check.h"

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
#include "io/copy/record_check.h"
#include "penstock/error.h"

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
    io::RecordCheck none;
    if (kind == ZipKind::kNone) {
      read(0, source_.size(), none);
      return 0;
    }
    const format::ZipDirectory directory = format::read_zip_directory(source_);
    for (const ZipEntry& member : directory.entries) check(member, kind);
    read(source_.size() - directory.trailing_bytes, directory.trailing_bytes, none);
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
    io::RecordCheck check({.crc32 = kind == ZipKind::kTorch ? format::recorded_crc(member) : member.crc32,
                           .bytes = member.size,
                           .path = where.path,
                           .offset = member.data_offset,
                           .name = where.tensor},
                          true);
    try {
      if (member.method == format::kZipStored) {
        read(member.data_offset, member.size, check);
      } else {
        inflate(member, check);
      }
      check.finish();
    } catch (const Error& error) {
      throw error.within(where);
    }
  }

  void read(std::uint64_t offset, std::uint64_t bytes, io::RecordCheck& check) {
    std::uint64_t at = offset;
    in_pieces(bytes, check, [&](std::span<std::byte> piece) {
      source_.read(at, piece);
      at += piece.size();
    });
  }

  void inflate(const ZipEntry& member, io::RecordCheck& check) {
    format::InflateStream stream(source_, member.data_offset, member.compressed_size, member.name);
    in_pieces(member.size, check, [&](std::span<std::byte> piece) { stream.fill(piece, member.size); });
    stream.require_end(member.size);
  }

  template <class Fill>
  void in_pieces(std::uint64_t bytes, io::RecordCheck& check, const Fill& fill) {
    while (bytes > 0) {
      const auto piece =
          std::span(piece_).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece_.size())));
      fill(piece);
      check.add(piece);
      bytes -= piece.size();
      if (seen_) seen_(piece.size());
    }
  }

  const ByteSource& source_;
  const Seen& seen_;
  std::vector<std::byte> piece_;
};

}  // namespace

std::uint64_t check_content(const ByteSource& source, const Seen& seen) { return ContentCheck(source, seen).run(); }

}  // namespace penstock::cli
