// Copies that bypass the caches. An ordinary store fetches the line of memory that it changes, which a large copy would
// fetch for nothing, and it pushes other data out of the caches. Streaming stores write whole lines and do neither.
// Memory that the process has never touched is different: the system fills each page with zeros at the first store, so
// the caches hold the page already and an ordinary store is faster.

#include "io/copy/copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/round.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace penstock::io {
namespace {

void cached_copy(std::byte* to, std::span<const std::byte> from) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

constexpr std::size_t kLeastPage = 4096;
constexpr std::size_t kMostPage = 65536;

// Each of these has: stream_line, which copies a line to a multiple of its size, past the caches; and publish_lines,
// after which a lock or an atomic shows other threads all lines.
#if defined(__SSE2__)

#define PENSTOCK_STREAMS 1

inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  for (std::size_t i = 0; i < kLine; i += sizeof(__m128i)) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), block);
  }
}

inline void publish_lines() noexcept { _mm_sfence(); }

#elif defined(__aarch64__)

#define PENSTOCK_STREAMS 1

inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
  const uint8x16_t a = vld1q_u8(bytes);
  const uint8x16_t b = vld1q_u8(bytes + 16);
  const uint8x16_t c = vld1q_u8(bytes + 32);
  const uint8x16_t d = vld1q_u8(bytes + 48);
  // No intrinsic function stores so.
  asm volatile("stnp %q1, %q2, [%0]\n\tstnp %q3, %q4, [%0, #32]"
               :
               : "r"(to), "w"(a), "w"(b), "w"(c), "w"(d)
               : "memory");
}

/// Here such stores are ordered as all others are.
inline void publish_lines() noexcept {}

#else
#define PENSTOCK_STREAMS 0
#endif

#if PENSTOCK_STREAMS

void streamed_copy(std::byte* to, std::span<const std::byte> from) noexcept {
  const std::size_t lead = std::min(from.size(), (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  if (lead > 0) std::memcpy(to, from.data(), lead);
  std::size_t at = lead;
  for (; from.size() - at >= kLine; at += kLine) stream_line(to + at, from.data() + at);
  if (at < from.size()) std::memcpy(to + at, from.data() + at, from.size() - at);
  publish_lines();
}

#else

void streamed_copy(std::byte* to, std::span<const std::byte> from) noexcept { cached_copy(to, from); }

#endif

}  // namespace

Stores stores_for(const std::byte* target) noexcept {
  const std::size_t page = core::page_size();
  std::byte* const begin = const_cast<std::byte*>(target) - reinterpret_cast<std::uintptr_t>(target) % page;
  // One byte for the page; an emulator whose machine has smaller pages writes one for each of those.
  std::array<unsigned char, kMostPage / kLeastPage> resident{};
  if (::mincore(begin, page, resident.data()) != 0) return Stores::kStreamed;
  return (resident[0] & 1U) != 0 ? Stores::kStreamed : Stores::kCached;
}

void copy(std::byte* to, std::span<const std::byte> from, Stores stores) noexcept {
  return stores == Stores::kStreamed ? streamed_copy(to, from) : cached_copy(to, from);
}

}  // namespace penstock::io
