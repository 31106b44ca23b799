#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace penstock::format {

/// What the first bytes of a file that no format recognises look like, for the error: "HDF5", "a gzip archive", "text
/// (JSON?)", or the bytes themselves in hexadecimal.
std::string describe_foreign(std::span<const std::byte> head);

}  // namespace penstock::format
