// A CRC-32 by folding. The data is a polynomial. Its first register is multiplied by the power of x that moves it onto
// the register behind, and added there, until one register is left, whose CRC is that of all. See "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009). Registers have 512 or 256 bits here, and the
// bytes can be stored to another place in the same pass.

#include "io/copy/crc32_wide.h"

#include "io/copy/copy.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace penstock::io {
namespace {

// Four registers hide the multiplication's latency.
constexpr std::size_t kRegisters = 4;

/// x^n modulo the CRC's polynomial, with the coefficient of x^31 in bit 0.
constexpr std::uint32_t power_of_x(std::size_t n) {
  std::uint32_t value = 0x80000000U;  // x^0
  for (; n > 0; --n) value = (value >> 1) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
  return value;
}

// Bits run backwards in this CRC: of 16 bytes as a polynomial, the low half has the high coefficients. Moving the bytes
// `bits` forward multiplies the halves by x^(64 + bits) and x^bits; the multiplication of reflected operands gives one
// factor x of that by itself.
constexpr long long low_factor(std::size_t bits) {
  return std::bit_cast<long long>(std::uint64_t{power_of_x(64 + bits - 1)} << 32);
}
constexpr long long high_factor(std::size_t bits) {
  return std::bit_cast<long long>(std::uint64_t{power_of_x(bits - 1)} << 32);
}

/// What is left of the data once it is folded is congruent to everything before: its CRC from an empty register, going
/// on with the bytes that did not fill a register, is that of all.
template <std::size_t kBytes>
std::uint32_t crc32_of_rest(const std::array<std::byte, kBytes>& rest, const std::byte* data, std::size_t bytes) {
  return libdeflate_crc32(libdeflate_crc32(~std::uint32_t{0}, rest.data(), rest.size()), data, bytes);
}

/// What becomes of the data on the way.
enum class Copied { kNot, kCached, kStreamed };

/// The data, and where it is copied to, if it is; streamed, `to` is at a multiple of a register.
struct CopiedRun {
  const std::byte* data;
  std::byte* to;
  std::size_t bytes;
};

/// The part of the run that fits no register.
template <Copied kCopied>
std::span<const std::byte> tail(const CopiedRun& run, std::size_t at) {
  if constexpr (kCopied != Copied::kNot) std::memcpy(run.to + at, run.data + at, run.bytes - at);
  return {run.data + at, run.bytes - at};
}

// The two widths below are the same but for their registers: code for an instruction set that the rest of the program
// may not use cannot be made from one template.

#define PENSTOCK_512 __attribute__((target("avx512f,vpclmulqdq")))

template <std::size_t kBytes>
PENSTOCK_512 inline __m512i factors_512() {
  constexpr long long kLow = low_factor(8 * kBytes);
  constexpr long long kHigh = high_factor(8 * kBytes);
  return _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
}
template <Copied kCopied>
PENSTOCK_512 inline __m512i take_512(const CopiedRun& run, std::size_t at) {
  const __m512i block = _mm512_loadu_si512(run.data + at);
  if constexpr (kCopied == Copied::kCached) _mm512_storeu_si512(run.to + at, block);
  if constexpr (kCopied == Copied::kStreamed) _mm512_stream_si512(reinterpret_cast<__m512i*>(run.to + at), block);
  return block;
}
/// `block` moved forward by the distance of the factors, added to `next`.
PENSTOCK_512 inline __m512i fold(__m512i block, __m512i by, __m512i next) {
  constexpr int kXor3 = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, by, 0x00), _mm512_clmulepi64_epi128(block, by, 0x11),
                                   next, kXor3);
}

template <Copied kCopied>
PENSTOCK_512 std::uint32_t crc32_512(std::uint32_t crc, const CopiedRun& run) {
  constexpr std::size_t kBlock = sizeof(__m512i);
  constexpr std::size_t kStride = kRegisters * kBlock;
  if (run.bytes < kStride) return libdeflate_crc32(crc, tail<kCopied>(run, 0).data(), run.bytes);
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m512i a = _mm512_xor_si512(take_512<kCopied>(run, 0), start);
  __m512i b = take_512<kCopied>(run, kBlock);
  __m512i c = take_512<kCopied>(run, 2 * kBlock);
  __m512i d = take_512<kCopied>(run, 3 * kBlock);
  std::size_t at = kStride;
  const __m512i by_stride = factors_512<kStride>();
  for (; run.bytes - at >= kStride; at += kStride) {
    a = fold(a, by_stride, take_512<kCopied>(run, at));
    b = fold(b, by_stride, take_512<kCopied>(run, at + kBlock));
    c = fold(c, by_stride, take_512<kCopied>(run, at + 2 * kBlock));
    d = fold(d, by_stride, take_512<kCopied>(run, at + 3 * kBlock));
  }
  const __m512i by_block = factors_512<kBlock>();
  __m512i sum = fold(fold(fold(a, by_block, b), by_block, c), by_block, d);
  for (; run.bytes - at >= kBlock; at += kBlock) sum = fold(sum, by_block, take_512<kCopied>(run, at));
  alignas(kBlock) std::array<std::byte, kBlock> rest;
  _mm512_store_si512(rest.data(), sum);
  const auto left = tail<kCopied>(run, at);
  return crc32_of_rest(rest, left.data(), left.size());
}

#define PENSTOCK_256 __attribute__((target("avx2,vpclmulqdq")))

template <std::size_t kBytes>
PENSTOCK_256 inline __m256i factors_256() {
  constexpr long long kLow = low_factor(8 * kBytes);
  constexpr long long kHigh = high_factor(8 * kBytes);
  return _mm256_set_epi64x(kHigh, kLow, kHigh, kLow);
}
template <Copied kCopied>
PENSTOCK_256 inline __m256i take_256(const CopiedRun& run, std::size_t at) {
  const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(run.data + at));
  if constexpr (kCopied == Copied::kCached) _mm256_storeu_si256(reinterpret_cast<__m256i*>(run.to + at), block);
  if constexpr (kCopied == Copied::kStreamed) _mm256_stream_si256(reinterpret_cast<__m256i*>(run.to + at), block);
  return block;
}
PENSTOCK_256 inline __m256i fold(__m256i block, __m256i by, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(block, by, 0x00);
  return _mm256_xor_si256(_mm256_xor_si256(low, next), _mm256_clmulepi64_epi128(block, by, 0x11));
}

template <Copied kCopied>
PENSTOCK_256 std::uint32_t crc32_256(std::uint32_t crc, const CopiedRun& run) {
  constexpr std::size_t kBlock = sizeof(__m256i);
  constexpr std::size_t kStride = kRegisters * kBlock;
  if (run.bytes < kStride) return libdeflate_crc32(crc, tail<kCopied>(run, 0).data(), run.bytes);
  const __m256i start = _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m256i a = _mm256_xor_si256(take_256<kCopied>(run, 0), start);
  __m256i b = take_256<kCopied>(run, kBlock);
  __m256i c = take_256<kCopied>(run, 2 * kBlock);
  __m256i d = take_256<kCopied>(run, 3 * kBlock);
  std::size_t at = kStride;
  const __m256i by_stride = factors_256<kStride>();
  for (; run.bytes - at >= kStride; at += kStride) {
    a = fold(a, by_stride, take_256<kCopied>(run, at));
    b = fold(b, by_stride, take_256<kCopied>(run, at + kBlock));
    c = fold(c, by_stride, take_256<kCopied>(run, at + 2 * kBlock));
    d = fold(d, by_stride, take_256<kCopied>(run, at + 3 * kBlock));
  }
  const __m256i by_block = factors_256<kBlock>();
  __m256i sum = fold(fold(fold(a, by_block, b), by_block, c), by_block, d);
  for (; run.bytes - at >= kBlock; at += kBlock) sum = fold(sum, by_block, take_256<kCopied>(run, at));
  alignas(kBlock) std::array<std::byte, kBlock> rest;
  _mm256_store_si256(reinterpret_cast<__m256i*>(rest.data()), sum);
  const auto left = tail<kCopied>(run, at);
  return crc32_of_rest(rest, left.data(), left.size());
}

template <std::uint32_t (*kCrc32)(std::uint32_t, const CopiedRun&)>
std::uint32_t of(std::uint32_t crc, std::span<const std::byte> data) {
  return kCrc32(crc, {data.data(), nullptr, data.size()});
}

/// Stores past the caches need whole lines of memory.
template <std::uint32_t (*kCached)(std::uint32_t, const CopiedRun&),
          std::uint32_t (*kStreamed)(std::uint32_t, const CopiedRun&)>
std::uint32_t copy_by(std::uint32_t crc, std::byte* to, std::span<const std::byte> from, Stores stores) {
  if (stores == Stores::kCached) return kCached(crc, {from.data(), to, from.size()});
  const std::size_t lead = std::min(from.size(), (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from.data(), lead);
  crc = libdeflate_crc32(crc, from.data(), lead);
  crc = kStreamed(crc, {from.data() + lead, to + lead, from.size() - lead});
  _mm_sfence();
  return crc;
}

}  // namespace

std::array<Crc32Functions, 2> wide_crc32s() noexcept {
  std::array<Crc32Functions, 2> wide{};
  if (!__builtin_cpu_supports("vpclmulqdq")) return wide;
  if (__builtin_cpu_supports("avx512f"))
    wide[0] = {of<crc32_512<Copied::kNot>>, copy_by<crc32_512<Copied::kCached>, crc32_512<Copied::kStreamed>>};
  if (__builtin_cpu_supports("avx2"))
    wide[1] = {of<crc32_256<Copied::kNot>>, copy_by<crc32_256<Copied::kCached>, crc32_256<Copied::kStreamed>>};
  return wide;
}

}  // namespace penstock::io

#elif !defined(__aarch64__)  // io/copy/crc32_aarch64.cpp

namespace penstock::io {

std::array<Crc32Functions, 2> wide_crc32s() noexcept { return {}; }

}  // namespace penstock::io

#endif
