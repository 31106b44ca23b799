// Copies that bypass the caches. An ordinary store fetches the line of memory that it changes, which a large copy would
// fetch for nothing, and it pushes other data out of the caches. Streaming stores write whole lines and do neither.
// Memory that the process has never touched is different: the system fills each page with zeros at the first store, so
// the caches hold the page already and an ordinary store is faster.

#include "io/copy/copy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>

#include <algorithm>
#endif

namespace penstock::io {
namespace {

void cached_copy(std::byte* to, std::span<const std::byte> from) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

#if defined(__SSE2__)

void streamed_copy(std::byte* to, std::span<const std::byte> from) noexcept {
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

#else

void streamed_copy(std::byte* to, std::span<const std::byte> from) noexcept { cached_copy(to, from); }

#endif

}  // namespace

Stores stores_for(const std::byte* target) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::byte* const begin = const_cast<std::byte*>(target) - reinterpret_cast<std::uintptr_t>(target) % page;
  unsigned char resident = 0;
  if (::mincore(begin, page, &resident) != 0) return Stores::kStreamed;
  return (resident & 1U) != 0 ? Stores::kStreamed : Stores::kCached;
}

void copy(std::byte* to, std::span<const std::byte> from, Stores stores) noexcept {
  return stores == Stores::kStreamed ? streamed_copy(to, from) : cached_copy(to, from);
}

}  // namespace penstock::io
