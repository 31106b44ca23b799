#include "io/crc32_wide.h"

// The only file that knows an instruction set.
#if defined(__x86_64__)

#include <immintrin.h>
#include <libdeflate.h>

#include <array>
#include <bit>

namespace penstock::io {
namespace {

constexpr std::size_t kBlock = 64;           // one register
constexpr std::size_t kStride = 4 * kBlock;  // four of them hide the multiplication's latency

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

#define PENSTOCK_WIDE __attribute__((target("avx512f,vpclmulqdq")))

PENSTOCK_WIDE inline __m512i factors(long long low, long long high) {
  return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}
PENSTOCK_WIDE inline __m512i load(const std::byte* from) { return _mm512_loadu_si512(from); }
/// `block` moved forward by the distance of the factors, added to `next`.
PENSTOCK_WIDE inline __m512i fold(__m512i block, __m512i by, __m512i next) {
  constexpr int kXor3 = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(block, by, 0x00), _mm512_clmulepi64_epi128(block, by, 0x11),
                                   next, kXor3);
}

PENSTOCK_WIDE std::uint32_t crc32_512(std::uint32_t crc, const std::byte* data, std::size_t bytes) {
  if (bytes < kStride) return libdeflate_crc32(crc, data, bytes);
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m512i a = _mm512_xor_si512(load(data), start);
  __m512i b = load(data + kBlock);
  __m512i c = load(data + 2 * kBlock);
  __m512i d = load(data + 3 * kBlock);
  data += kStride;
  bytes -= kStride;
  const __m512i by_stride = factors(low_factor(8 * kStride), high_factor(8 * kStride));
  for (; bytes >= kStride; data += kStride, bytes -= kStride) {
    a = fold(a, by_stride, load(data));
    b = fold(b, by_stride, load(data + kBlock));
    c = fold(c, by_stride, load(data + 2 * kBlock));
    d = fold(d, by_stride, load(data + 3 * kBlock));
  }
  const __m512i by_block = factors(low_factor(8 * kBlock), high_factor(8 * kBlock));
  __m512i sum = fold(fold(fold(a, by_block, b), by_block, c), by_block, d);
  for (; bytes >= kBlock; data += kBlock, bytes -= kBlock) sum = fold(sum, by_block, load(data));
  // What is left is congruent to everything so far: its CRC from an empty register is that of all.
  alignas(kBlock) std::array<std::byte, kBlock> rest;
  _mm512_store_si512(rest.data(), sum);
  return libdeflate_crc32(libdeflate_crc32(~std::uint32_t{0}, rest.data(), rest.size()), data, bytes);
}

}  // namespace

Crc32Function wide_crc32() noexcept {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") ? crc32_512 : nullptr;
}

}  // namespace penstock::io

#else

namespace penstock::io {

Crc32Function wide_crc32() noexcept { return nullptr; }

}  // namespace penstock::io

#endif
