#pragma once

// Which zip archives are `.npz`, which are torch's, and what the others are. Told by the members' names.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/zip/reader.h"
#include "penstock/source.h"

namespace penstock::format {

enum class ZipKind : std::uint8_t {
  kNone,     ///< not a zip archive
  kPlain,    ///< a member is called `.npy`, or there is no member, or the archive is broken: its reader says how
  kTorch,    ///< `is_torch_archive`: `.pt`
  kForeign,  ///< members, but neither arrays nor a pickle of torch: a document, a package, a folder packed by somebody
};

/// Whether `name` is that of the record `wanted`, which is in lower case. torch's reader ignores the case of letters.
bool is_record_name(std::string_view name, std::string_view wanted) noexcept;

/// Compares names without regard to the case of letters: below, at or above 0.
int compare_in_any_case(std::string_view a, std::string_view b) noexcept;

/// The last part of a member's name.
std::string_view base_of(std::string_view name) noexcept;

/// Whether these members make a torch archive: `data.pkl` lies in any folder, or in none, in letters of any case; or
/// one folder has a record that only torch writes, so that an archive which has lost its pickle is not taken for a
/// `.npz`. torch does not read all of these: its reader says why.
bool is_torch_archive(std::span<const ZipEntry> entries) noexcept;

/// Looks at the first bytes and, in a zip archive, at the names in the central directory. An archive without members is
/// an `.npz` unless its file's name ends otherwise: there is nothing else to tell it by.
ZipKind sniff_zip(std::span<const std::byte> head, const ByteSource& source);

/// What a zip archive is that no format takes, for the error: "a Java archive", "a zip archive that holds the file
/// ...".
std::string describe_zip(const ByteSource& source);

}  // namespace penstock::format
