#pragma once

#include <cstdint>
#include <string_view>

#include "penstock/source.h"

namespace penstock::format {

/// How much of a zip archive the reader of a format looks at (Format::index_bytes): its directory, a little of each
/// member, and all of those whose names end so. The whole file where it is short, the directory cannot be read, or that
/// is long itself.
std::uint64_t zip_index_bytes(const ByteSource& source, std::string_view read_whole);

}  // namespace penstock::format
