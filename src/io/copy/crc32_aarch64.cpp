// A CRC-32 by the instruction of 64-bit ARM that takes eight bytes, crc32x. Each waits for the last one's result, and a
// processor can begin one every cycle, so three lanes of the data are taken side by side, each with a register of its
// own. Then a lane's register is moved forward over the lanes behind it, which tables do: the CRC is linear. The bytes
// can be stored to another place in the same pass.

#include "io/copy/copy.h"
#include "io/copy/crc32_wide.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstring>

// Not every processor of the baseline has it.
#define PENSTOCK_CRC __attribute__((target("+crc")))

namespace penstock::io {
namespace {

// Whole lines, and no multiple of 4096 bytes, at which lines share sets of the first-level cache.
constexpr std::size_t kLane = 31 * kLine;
constexpr std::size_t kLanes = 3;

using Words = std::array<std::uint64_t, 2>;
using ShiftTables = std::array<std::array<std::uint32_t, 256>, 4>;

/// The register `crc` after `bytes` zeros.
constexpr std::uint32_t after_zeros(std::uint32_t crc, std::size_t bytes) {
  for (std::size_t bit = 0; bit < 8 * bytes; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  return crc;
}

/// What each byte of a register becomes over a lane: by its bits, of which it is the sum.
constexpr ShiftTables make_shift_tables() {
  ShiftTables tables{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::size_t bit = 0; bit < 8; ++bit) {
      const std::uint32_t moved = after_zeros(std::uint32_t{1} << (8 * byte + bit), kLane);
      for (std::size_t value = 0; value < 256; ++value) {
        if ((value >> bit & 1U) != 0) tables[byte][value] ^= moved;
      }
    }
  }
  return tables;
}
constexpr ShiftTables kOverLane = make_shift_tables();

std::uint32_t over_lane(std::uint32_t crc) noexcept {
  return kOverLane[0][crc & 0xFFU] ^ kOverLane[1][crc >> 8 & 0xFFU] ^ kOverLane[2][crc >> 16 & 0xFFU] ^
         kOverLane[3][crc >> 24];
}

/// What becomes of the data on the way.
enum class Copied { kNot, kCached, kStreamed };

template <Copied kCopied>
inline Words take(const std::byte* from, std::byte* to) noexcept {
  Words words;
  std::memcpy(&words, from, sizeof(words));
  if constexpr (kCopied == Copied::kCached) std::memcpy(to, &words, sizeof(words));
  if constexpr (kCopied == Copied::kStreamed) {
    asm volatile("stnp %1, %2, [%0]" : : "r"(to), "r"(words[0]), "r"(words[1]) : "memory");
  }
  return words;
}

PENSTOCK_CRC inline std::uint32_t add(std::uint32_t crc, const Words& words) noexcept {
  return __crc32d(__crc32d(crc, words[0]), words[1]);
}

/// `to` is null where nothing is copied; streamed, it is at a multiple of a line.
template <Copied kCopied>
PENSTOCK_CRC std::uint32_t crc32_lanes(std::uint32_t crc, std::span<const std::byte> data, std::byte* to) {
  const std::byte* from = data.data();
  std::size_t left = data.size();
  const auto advance = [&](std::size_t bytes) {
    from += bytes;
    if constexpr (kCopied != Copied::kNot) to += bytes;
    left -= bytes;
  };
  const auto target = [&](std::size_t at) { return kCopied == Copied::kNot ? nullptr : to + at; };

  crc = ~crc;
  for (; left >= kLanes * kLane; advance(kLanes * kLane)) {
    std::uint32_t second = 0;
    std::uint32_t third = 0;
    for (std::size_t at = 0; at < kLane; at += sizeof(Words)) {
      crc = add(crc, take<kCopied>(from + at, target(at)));
      second = add(second, take<kCopied>(from + kLane + at, target(kLane + at)));
      third = add(third, take<kCopied>(from + 2 * kLane + at, target(2 * kLane + at)));
    }
    crc = over_lane(over_lane(crc) ^ second) ^ third;
  }
  for (; left >= sizeof(Words); advance(sizeof(Words))) crc = add(crc, take<kCopied>(from, target(0)));
  if constexpr (kCopied != Copied::kNot) {
    if (left > 0) std::memcpy(to, from, left);
  }
  for (; left > 0; advance(1)) crc = __crc32b(crc, std::to_integer<std::uint8_t>(*from));
  return ~crc;
}

std::uint32_t of(std::uint32_t crc, std::span<const std::byte> data) {
  return crc32_lanes<Copied::kNot>(crc, data, nullptr);
}

/// Stores past the caches need whole lines of memory. They are ordered as all others are, without a fence.
std::uint32_t copy_by_lanes(std::uint32_t crc, std::byte* to, std::span<const std::byte> from, Stores stores) {
  if (stores == Stores::kCached) return crc32_lanes<Copied::kCached>(crc, from, to);
  const std::size_t lead = std::min(from.size(), (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  crc = crc32_lanes<Copied::kCached>(crc, from.first(lead), to);
  return crc32_lanes<Copied::kStreamed>(crc, from.subspan(lead), to + lead);
}

}  // namespace

std::array<Crc32Functions, 2> wide_crc32s() noexcept {
  if ((::getauxval(AT_HWCAP) & HWCAP_CRC32) == 0) return {};
  return {Crc32Functions{of, copy_by_lanes}, Crc32Functions{}};
}

}  // namespace penstock::io

#endif
