#pragma once

#include <cstdint>
#include <optional>

#include "penstock/source.h"

namespace penstock::io {

/// Which share of [offset, offset + length) of a source's file is in the page cache, from 0 to 1. Looks at samples of a
/// few pages in every two megabytes. Nothing when the source has no file or the system does not say. Reads nothing
/// where cachestat(2) answers; elsewhere (before Linux 6.5, or for a file that is neither ours nor writable) it may
/// read the sampled pages. `length` > 0, inside the source.
std::optional<double> cached_share(const ByteSource& source, std::uint64_t offset, std::uint64_t length);

}  // namespace penstock::io
