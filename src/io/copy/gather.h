#pragma once

// Rows from anywhere in memory, one behind the other: what a batch of shuffled rows of an array is. The rows' cache
// misses overlap (interleaved_copy.h).

#include <cstddef>
#include <span>
#include <string_view>

#include "io/copy/interleaved_copy.h"

namespace penstock::io {

/// Copies rows of equal size from anywhere in memory. The memory must stay valid. Faster than a loop of memcpy, because
/// several rows are waited for at once.
void gather(std::span<const GatherRow> rows, std::size_t row_bytes) noexcept;
/// The same for memory that may be a mapping of a file. kTruncated when another program shortens the file meanwhile.
void guarded_gather(std::span<const GatherRow> rows, std::size_t row_bytes, std::string_view path);

}  // namespace penstock::io
