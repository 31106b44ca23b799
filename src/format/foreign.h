#pragma once

// What a file that is of no known format looks like, so that the error helps: a gzip file, HTML of a login page, HDF5.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::format {

/// Whether the error may show bytes of the content.
enum class Quotes : std::uint8_t { kFirstBytes, kNothing };

/// What the first bytes of a file that no format recognises look like, for the error: "HDF5", "a gzip archive", "text
/// (JSON?)", or the bytes themselves in hexadecimal.
std::string describe_foreign(std::span<const std::byte> head, Quotes quotes = Quotes::kFirstBytes);

/// "a gzip file: decompress it first" for a compressed file whose name says so as well; else nothing. Elements of an
/// array may begin like any other file.
std::string_view compression_of(std::span<const std::byte> head, std::string_view name);

}  // namespace penstock::format
