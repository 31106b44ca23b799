// Finds the end of a zip archive: the end record in the last 64 KiB, and the zip64 records in front of it for large
// archives.
//
//   | members | directory | zip64 end record | zip64 locator | end record | comment | bytes of others |
//
// The last two may be missing, and the zip64 records too.

#include "format/zip/end.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "format/zip/layout.h"

namespace penstock::format {

namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): the records' own names, in this file alone
using core::range_fits;

constexpr std::uint64_t kTailBytes = kEndBytes + 0xFFFF;
/// Nearly every archive ends with its end record or a short comment.
constexpr std::uint64_t kShortTailBytes = std::uint64_t{4} << 10;

/// The end record and what follows it and its comment.
struct End {
  std::uint64_t at = 0;
  std::uint64_t trailing_bytes = 0;
};

/// The last end record of the archive's last `tail` bytes.
std::optional<End> last_end(ZipBytes& archive, std::uint64_t tail) {
  const std::uint64_t size = archive.size();
  const std::byte* const bytes = archive.at(size - tail, tail);
  for (std::uint64_t at = tail - kEndBytes + 1; at-- > 0;) {
    if (u32(bytes + at) != kEndSignature) continue;
    const std::uint64_t comment = u16(bytes + at + 20);
    const std::uint64_t rest = tail - at - kEndBytes;
    if (comment > rest) {
      archive.fail(ErrorCode::kTruncated,
                   core::format("the archive's comment has {} of {}: the file was cut short; fetch or write it again",
                                core::counted(rest, "byte"), comment),
                   size - tail + at);
    }
    return End{size - tail + at, rest - comment};
  }
  return std::nullopt;
}

/// The last end record wins with every reader. Bytes behind its comment (a line's end, padding to a block) are passed
/// over, as zipfile and torch do.
End find_end(ZipBytes& archive) {
  const std::uint64_t size = archive.size();
  if (size < kEndBytes) {
    archive.fail(ErrorCode::kTruncated,
                 core::format("{} too few for a zip archive: the file was cut short; fetch or write it again",
                              core::counted(size, "byte is", "bytes are")),
                 0);
  }
  for (const std::uint64_t tail : {kShortTailBytes, kTailBytes}) {
    if (const std::optional<End> end = last_end(archive, std::min(size, tail))) return *end;
  }
  archive.fail(ErrorCode::kTruncated,
               "the zip archive has no end-of-directory record: the file was cut short; fetch or write it again", size);
}

/// The offset of the zip64 end record, when there is one.
std::optional<std::uint64_t> find_end64(ZipBytes& archive, std::uint64_t end) {
  if (end < kLocatorBytes) return std::nullopt;
  const std::uint64_t locator = end - kLocatorBytes;
  const std::byte* const bytes = archive.at(locator, kLocatorBytes);
  if (u32(bytes) != kLocatorSignature) return std::nullopt;
  const std::uint64_t record = u64(bytes + 8);
  if (u32(bytes + 4) != 0 || u32(bytes + 16) > 1) {
    archive.fail(ErrorCode::kUnsupported, "the zip archive is one of several disks, which are not read", locator);
  }
  if (!range_fits(record, kEnd64Bytes, locator)) {
    archive.fail(ErrorCode::kCorrupt,
                 core::format("the zip64 locator points at byte {}, where no end record fits", record), locator);
  }
  return record;
}

/// Where the archive begins that ends with `end`, when its zip64 record lies behind where the locator points, at
/// `end64`: offsets count from there.
std::uint64_t shift_of(ZipBytes& archive, std::uint64_t end, std::uint64_t end64) {
  if (end < kLocatorBytes + kEnd64Bytes) return 0;
  const std::uint64_t record = end - kLocatorBytes - kEnd64Bytes;
  if (record <= end64 || u32(archive.at(record, kEnd64Bytes)) != kEnd64Signature) return 0;
  const std::uint64_t begin = record - end64;
  return u32(archive.at(begin, sizeof(std::uint32_t))) == kLocalSignature ? begin : 0;
}

void read_end64(ZipBytes& archive, std::uint64_t end, std::uint64_t end64, ZipPlace& found) {
  const std::byte* const bytes = archive.at(end64, kEnd64Bytes);
  const std::uint64_t length = u64(bytes + 4);
  if (u32(bytes) != kEnd64Signature || length != end - kLocatorBytes - end64 - 12) {
    if (const std::uint64_t begin = shift_of(archive, end, end64); begin != 0) {
      archive.fail(
          ErrorCode::kUnsupported,
          core::format(
              "the zip archive at the end begins at byte {}: the file is several archives back to back, "
              "like a .distcp of torch.distributed.checkpoint: open the folder, whose .metadata says what is in it",
              begin),
          begin);
    }
    archive.fail(ErrorCode::kCorrupt, "there is no zip64 end record of the right length where its locator points",
                 end64);
  }
  if (u32(bytes + 16) != 0 || u32(bytes + 20) != 0 || u64(bytes + 24) != u64(bytes + 32)) {
    archive.fail(ErrorCode::kUnsupported, "the zip archive is one of several disks, which are not read", end64);
  }
  const ZipPlace wide{u64(bytes + 32), u64(bytes + 48), u64(bytes + 40), found.trailing_bytes};
  const auto agrees = [](std::uint64_t narrow, std::uint64_t value, std::uint64_t sentinel) {
    return narrow == value || narrow == sentinel;
  };
  if (!agrees(found.count, wide.count, kSentinel16) || !agrees(found.offset, wide.offset, kSentinel32) ||
      !agrees(found.bytes, wide.bytes, kSentinel32)) {
    archive.fail(ErrorCode::kCorrupt, "the two end-of-directory records of the zip archive disagree", end64);
  }
  found = wide;
}

}  // namespace

void ZipBytes::fail(ErrorCode code, std::string message, std::uint64_t offset, std::string_view member) const {
  throw Error(code, std::move(message), {std::string(path_), offset, std::string(member)});
}

std::vector<std::byte> ZipBytes::copy(std::uint64_t offset, std::uint64_t length) {
  std::vector<std::byte> out(length);
  if (has(offset, length)) {
    std::copy_n(at(offset, length), length, out.begin());
  } else {
    source_->read(offset, out);
  }
  return out;
}

void ZipBytes::fill(std::uint64_t offset, std::uint64_t length) {
  buffer_.resize(length);
  source_->read(offset, buffer_);
  held_ = buffer_;
  base_ = offset;
}

ZipPlace find_zip_directory(ZipBytes& archive, const ZipLimits& limits) {
  const auto [end, trailing_bytes] = find_end(archive);
  const std::byte* const bytes = archive.at(end, kEndBytes);
  if (u16(bytes + 4) != 0 || u16(bytes + 6) != 0 || u16(bytes + 8) != u16(bytes + 10)) {
    archive.fail(ErrorCode::kUnsupported, "the zip archive is one of several disks, which are not read", end);
  }
  ZipPlace found{u16(bytes + 10), u32(bytes + 16), u32(bytes + 12), trailing_bytes};
  const std::optional<std::uint64_t> end64 = find_end64(archive, end);
  if (end64) read_end64(archive, end, *end64, found);
  const std::uint64_t directory_end = end64.value_or(end);
  if (!range_fits(found.offset, found.bytes, directory_end) || found.offset + found.bytes != directory_end) {
    archive.fail(ErrorCode::kCorrupt,
                 core::format("the zip directory is said to be {} at byte {}, but it must end at byte {}: bytes were "
                              "added to or lost from the archive",
                              core::counted(found.bytes, "byte"), found.offset, directory_end),
                 end);
  }
  if (found.count > found.bytes / kCentralBytes) {
    archive.fail(ErrorCode::kCorrupt,
                 core::format("{} cannot be listed in a zip directory of {}", core::counted(found.count, "member"),
                              core::counted(found.bytes, "byte")),
                 end);
  }
  if (found.count > limits.max_entries || found.bytes > limits.max_directory_bytes) {
    archive.fail(ErrorCode::kLimit,
                 core::format("the zip directory lists {} in {}, more than the limits of {} and {}",
                              core::counted(found.count, "member"), core::counted(found.bytes, "byte"),
                              limits.max_entries, limits.max_directory_bytes),
                 end);
  }
  return found;
}

}  // namespace penstock::format
