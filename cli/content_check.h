#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "penstock/source.h"

namespace penstock::cli {

/// Reads all of a tensor file, a piece at a time, and checks what opening it does not: that each byte can be read, that
/// members of zip archives inflate to their size, and every CRC that is recorded, also of members that no tensor lies
/// in. Large files are read by up to `threads` threads. `seen`, when set, is called with the number of bytes of each
/// piece, by any of them. Returns how many bytes lie behind the end of a zip archive, which readers pass over.
/// kChecksum, kCorrupt, kTruncated, kIo.
std::uint64_t check_content(const ByteSource& source, std::size_t threads,
                            const std::function<void(std::uint64_t bytes)>& seen = {});

}  // namespace penstock::cli
