#pragma once

// float16 for convert.cpp: most checkpoints are halves, so these loops are worth their own instructions.

#include <cstddef>

namespace penstock::ops {

/// float16 to float32 and back, `count` elements, on either side unaligned.
void decode_float16(const std::byte* from, std::byte* to, std::size_t count);
void encode_float16(const std::byte* from, std::byte* to, std::size_t count);

/// What these two are: the processor's instructions where it has them, arithmetic with the same results elsewhere.
struct HalfLoops {
  void (*decode)(const std::byte* from, std::byte* to, std::size_t count);
  void (*encode)(const std::byte* from, std::byte* to, std::size_t count);
};
HalfLoops fastest_half_loops() noexcept;
HalfLoops portable_half_loops() noexcept;

}  // namespace penstock::ops
