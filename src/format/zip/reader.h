#pragma once

// The zip container of `.npz` and `.pt`: finding and checking its directory. No payload is read. docs/formats/zip.md
// describes the bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/zip/end.h"
#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::format {

inline constexpr std::uint16_t kZipStored = 0;
inline constexpr std::uint16_t kZipDeflate = 8;

/// One member. `name` is a view of the bytes that were parsed: UTF-8 where `flags` say so, else text of code page 437,
/// as member_name() gives it.
struct ZipEntry {
  std::string_view name;
  std::uint64_t header_offset = 0;    ///< of the local header
  std::uint64_t data_offset = 0;      ///< of the stored bytes
  std::uint64_t compressed_size = 0;  ///< bytes in the file
  std::uint64_t size = 0;             ///< bytes after inflating; equal to compressed_size when stored
  std::uint32_t crc32 = 0;            ///< of the bytes after inflating
  std::uint16_t method = kZipStored;  ///< kZipStored or kZipDeflate
  std::uint16_t flags = 0;
};

/// The name of a member as UTF-8.
std::string member_name(const ZipEntry& entry);

/// The members in the order of the central directory. Owns, or keeps alive, what the names point into.
struct ZipDirectory {
  ZipDirectory() = default;
  ZipDirectory(ZipDirectory&&) = default;
  ZipDirectory& operator=(ZipDirectory&&) = default;
  ZipDirectory(const ZipDirectory&) = delete;
  ZipDirectory& operator=(const ZipDirectory&) = delete;

  std::vector<ZipEntry> entries;
  std::uint64_t trailing_bytes = 0;  ///< behind the end record and its comment
  std::vector<std::byte> bytes;
  Buffer memory;
};

/// Checks the whole container and lists its members. An archive must have one end record, a central directory that
/// agrees with every local header and data descriptor, and members that lie back to back from byte 0 to the directory.
/// No two members may have one name; there is no encryption and one disk, and members are stored or deflated. Bytes
/// behind the end record are ignored, as by zipfile and torch, as long as the record lies in the last 64 KiB.
/// kTruncated when the end is missing, kUnsafe for a name that readers disagree about, kUnsupported for legal features
/// that are not read, kCorrupt for the rest. Errors name the path, the member and the byte.
///
/// The whole file is in memory; `entries` is overwritten and its capacity reused, and for up to 32 members in file
/// order nothing else is allocated. `path` is for errors.
void read_zip_directory(std::span<const std::byte> file, std::string_view path, std::vector<ZipEntry>& entries,
                        const ZipLimits& limits = {});

/// The same for a source. Reads only the end, the directory and the members' headers; neighbouring headers by one read.
ZipDirectory read_zip_directory(const ByteSource& source, const ZipLimits& limits = {});

/// The members as the directory lists them. Does not check their own headers, nor names that occur twice.
ZipDirectory list_zip_members(const ByteSource& source, const ZipLimits& limits = {});

/// Checks that `name` is one we read and write: not empty, without NUL, UTF-8 where it is said to be. It is a label and
/// never a path: nothing is extracted. kCorrupt, kUnsupported, kUnsafe; the error carries only the message.
void check_zip_name(std::string_view name, bool said_to_be_utf8 = true);

}  // namespace penstock::format
