#pragma once

// A `.pt` as torch writes it since 1.6: a zip archive. docs/formats/pt.md describes it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/file_bytes.h"
#include "format/format.h"
#include "format/zip/layouts.h"
#include "format/zip/reader.h"

namespace penstock::format {

/// The records of an archive that say what the others mean. Positions in the zip directory.
struct PtRecords {
  std::string_view prefix;  ///< of every record, with its '/'
  std::size_t pickle = 0;
  std::optional<std::size_t> byteorder;
  std::optional<std::size_t> version;
  std::optional<std::size_t> format_version;
  std::optional<std::size_t> storage_alignment;
  bool torchscript = false;
  bool other_case =
      false;  ///< a record's name has letters of other case than torch writes; torch reads it all the same
};

/// Finds them, in letters of any case, as torch does. kCorrupt for records outside the folder of the first one, without
/// `data.pkl` there, or that differ in nothing but the case of letters; kUnsupported for `.pt2` archives.
PtRecords find_pt_records(std::span<const ZipEntry> entries, std::string_view path);

/// The recorded CRC-32 of a record. Nothing when torch wrote none: it then writes 0 (set_crc32_options(False),
/// skip_data).
std::optional<std::uint32_t> recorded_crc(const ZipEntry& entry) noexcept;

/// The bytes of a small record, inflated if need be and checked against their CRC when `verify`.
std::span<const std::byte> read_pt_record(const FileBytes& file, const ZipEntry& entry, bool verify,
                                          std::vector<std::byte>& store);

/// Without `fixed_bytes`, which PtLayouts adds.
ZipParsed read_pt_zip(const FileBytes& file, std::span<const ZipEntry> entries, const OpenOptions& options);

}  // namespace penstock::format
