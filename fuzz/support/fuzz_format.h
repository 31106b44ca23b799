#pragma once

#include <cstddef>
#include <cstdint>

#include "format/rows.h"

namespace penstock::fuzz {

/// Reads `data` as a file of `format`: its index, every view in which must lie inside the file, then, when it is small,
/// its payload. An Error is a fine outcome; anything else that is not success aborts. Returns what a fuzz target
/// returns.
int fuzz_format(const format::Format& format, const std::uint8_t* data, std::size_t size);

}  // namespace penstock::fuzz
