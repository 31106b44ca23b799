#include "ops/half_loops.h"

#include <cstring>

#include "core/processor.h"
#include "ops/small_float.h"

#if PENSTOCK_HAS_AVX2_LOOPS
#include <immintrin.h>
#endif

namespace penstock::ops {
namespace {

void decode_portable(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Float16 half{};
    std::memcpy(&half, from + i * 2, 2);
    const float value = Float16::decode(half);
    std::memcpy(to + i * 4, &value, 4);
  }
}

void encode_portable(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, from + i * 4, 4);
    const Float16 half = Float16::encode(value);
    std::memcpy(to + i * 2, &half, 2);
  }
}

#if PENSTOCK_HAS_AVX2_LOOPS

constexpr std::size_t kLanes = 8;

/// Returns how many elements it converted; the rest is less than a vector.
PENSTOCK_TARGET_AVX2 std::size_t decode_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 2));
    _mm256_storeu_ps(reinterpret_cast<float*>(to + i * 4), _mm256_cvtph_ps(halves));
  }
  return i;
}

PENSTOCK_TARGET_AVX2 std::size_t encode_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256 values = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * 4));
    const __m128i halves = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 2), halves);
  }
  return i;
}

#else

std::size_t decode_vectors(const std::byte*, std::byte*, std::size_t) { return 0; }
std::size_t encode_vectors(const std::byte*, std::byte*, std::size_t) { return 0; }

#endif

}  // namespace

void decode_float16(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t done = core::has_avx2() ? decode_vectors(from, to, count) : 0;
  decode_portable(from + done * 2, to + done * 4, count - done);
}

void encode_float16(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t done = core::has_avx2() ? encode_vectors(from, to, count) : 0;
  encode_portable(from + done * 4, to + done * 2, count - done);
}

}  // namespace penstock::ops
