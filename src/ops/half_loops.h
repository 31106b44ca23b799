#pragma once

#include <cstddef>

namespace penstock::ops {

/// float16 to float32 and back, `count` elements, on either side unaligned. By the processor's instructions where it
/// has them, by arithmetic with the same results elsewhere.
void decode_float16(const std::byte* from, std::byte* to, std::size_t count);
void encode_float16(const std::byte* from, std::byte* to, std::size_t count);

}  // namespace penstock::ops
