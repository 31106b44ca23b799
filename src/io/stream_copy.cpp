#include "io/stream_copy.h"

#include <cstring>

#if defined(__SSE2__)

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>

namespace penstock::io {

void stream_copy(std::byte* to, std::span<const std::byte> from) noexcept {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kBlock = sizeof(__m128i);
  const std::size_t lead = std::min(from.size(), (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  if (lead > 0) std::memcpy(to, from.data(), lead);
  std::size_t at = lead;
  for (; from.size() - at >= kLine; at += kLine) {
    for (std::size_t i = at; i < at + kLine; i += kBlock) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data() + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), block);
    }
  }
  if (at < from.size()) std::memcpy(to + at, from.data() + at, from.size() - at);
  _mm_sfence();
}

}  // namespace penstock::io

#else

namespace penstock::io {

void stream_copy(std::byte* to, std::span<const std::byte> from) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace penstock::io

#endif
