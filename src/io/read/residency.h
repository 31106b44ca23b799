#pragma once

#include <cstdint>
#include <optional>

#include "penstock/source.h"

namespace penstock::io {

/// Which part of [offset, offset + length) of a source's file is in the page cache, 0 to 1, by samples of a few pages
/// in every two megabytes. Nothing where the source has no file or the system does not tell. Reads nothing, but that a
/// system without cachestat(2) (before Linux 6.5, or a file that is neither ours nor writable) may fetch the sampled
/// pages. `length` > 0, inside the source.
std::optional<double> cached_share(const ByteSource& source, std::uint64_t offset, std::uint64_t length);

}  // namespace penstock::io
