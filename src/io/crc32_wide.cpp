#include "io/crc32_wide.h"

// The only file that knows an instruction set.
#if defined(__x86_64__)

#include <immintrin.h>
#include <libdeflate.h>

#include <array>
#include <bit>

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

// The two widths below are the same but for their registers: code for an instruction set that the rest of the program
// may not use cannot be made from one template.

#define PENSTOCK_512 __attribute__((target("avx512f,vpclmulqdq")))

template <std::size_t kBytes>
PENSTOCK_512 inline __m512i factors_512() {
  constexpr long long kLow = low_factor(8 * kBytes);
  constexpr long long kHigh = high_factor(8 * kBytes);
  return _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
}
PENSTOCK_512 inline __m512i load_512(const std::byte* from) { return _mm512_loadu_si512(from); }
/// `block` moved forward by the distance of the factors, added to `next`.
PENSTOCK_512 inline __m512i fold(__m512i block, __m512i by, __m512i next) {
  constexpr int kXor3 = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, by, 0x00), _mm512_clmulepi64_epi128(block, by, 0x11),
                                   next, kXor3);
}

PENSTOCK_512 std::uint32_t crc32_512(std::uint32_t crc, const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kBlock = sizeof(__m512i);
  constexpr std::size_t kStride = kRegisters * kBlock;
  if (bytes < kStride) return libdeflate_crc32(crc, data, bytes);
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m512i a = _mm512_xor_si512(load_512(data), start);
  __m512i b = load_512(data + kBlock);
  __m512i c = load_512(data + 2 * kBlock);
  __m512i d = load_512(data + 3 * kBlock);
  data += kStride;
  bytes -= kStride;
  const __m512i by_stride = factors_512<kStride>();
  for (; bytes >= kStride; data += kStride, bytes -= kStride) {
    a = fold(a, by_stride, load_512(data));
    b = fold(b, by_stride, load_512(data + kBlock));
    c = fold(c, by_stride, load_512(data + 2 * kBlock));
    d = fold(d, by_stride, load_512(data + 3 * kBlock));
  }
  const __m512i by_block = factors_512<kBlock>();
  __m512i sum = fold(fold(fold(a, by_block, b), by_block, c), by_block, d);
  for (; bytes >= kBlock; data += kBlock, bytes -= kBlock) sum = fold(sum, by_block, load_512(data));
  alignas(kBlock) std::array<std::byte, kBlock> rest;
  _mm512_store_si512(rest.data(), sum);
  return crc32_of_rest(rest, data, bytes);
}

#define PENSTOCK_256 __attribute__((target("avx2,vpclmulqdq")))

template <std::size_t kBytes>
PENSTOCK_256 inline __m256i factors_256() {
  constexpr long long kLow = low_factor(8 * kBytes);
  constexpr long long kHigh = high_factor(8 * kBytes);
  return _mm256_set_epi64x(kHigh, kLow, kHigh, kLow);
}
PENSTOCK_256 inline __m256i load_256(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
PENSTOCK_256 inline __m256i fold(__m256i block, __m256i by, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(block, by, 0x00);
  return _mm256_xor_si256(_mm256_xor_si256(low, next), _mm256_clmulepi64_epi128(block, by, 0x11));
}

PENSTOCK_256 std::uint32_t crc32_256(std::uint32_t crc, const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kBlock = sizeof(__m256i);
  constexpr std::size_t kStride = kRegisters * kBlock;
  if (bytes < kStride) return libdeflate_crc32(crc, data, bytes);
  const __m256i start = _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m256i a = _mm256_xor_si256(load_256(data), start);
  __m256i b = load_256(data + kBlock);
  __m256i c = load_256(data + 2 * kBlock);
  __m256i d = load_256(data + 3 * kBlock);
  data += kStride;
  bytes -= kStride;
  const __m256i by_stride = factors_256<kStride>();
  for (; bytes >= kStride; data += kStride, bytes -= kStride) {
    a = fold(a, by_stride, load_256(data));
    b = fold(b, by_stride, load_256(data + kBlock));
    c = fold(c, by_stride, load_256(data + 2 * kBlock));
    d = fold(d, by_stride, load_256(data + 3 * kBlock));
  }
  const __m256i by_block = factors_256<kBlock>();
  __m256i sum = fold(fold(fold(a, by_block, b), by_block, c), by_block, d);
  for (; bytes >= kBlock; data += kBlock, bytes -= kBlock) sum = fold(sum, by_block, load_256(data));
  alignas(kBlock) std::array<std::byte, kBlock> rest;
  _mm256_store_si256(reinterpret_cast<__m256i*>(rest.data()), sum);
  return crc32_of_rest(rest, data, bytes);
}

}  // namespace

std::array<Crc32Function, 2> wide_crc32s() noexcept {
  if (!__builtin_cpu_supports("vpclmulqdq")) return {};
  return {__builtin_cpu_supports("avx512f") ? crc32_512 : nullptr,
          __builtin_cpu_supports("avx2") ? crc32_256 : nullptr};
}

}  // namespace penstock::io

#else

namespace penstock::io {

std::array<Crc32Function, 2> wide_crc32s() noexcept { return {}; }

}  // namespace penstock::io

#endif
