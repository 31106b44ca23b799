#pragma once

// Small pieces all over a file that its index wants, such as the headers of a zip archive's members: of a server they
// are asked for at once.

#include <cstdint>
#include <span>

#include "penstock/source.h"

namespace penstock::io {

/// Bytes of a source from `begin` to before `end`.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Reads pieces of a source that is being opened (io/source/opened_file.h) and lies on a server, all at once, and keeps
/// them, so that later reads inside of one ask for nothing. The pieces are in order; those that touch become one.
/// Nothing for all other sources: false. kTruncated, and what servers answer.
bool read_ahead(const ByteSource& source, std::span<const Extent> pieces);

}  // namespace penstock::io
