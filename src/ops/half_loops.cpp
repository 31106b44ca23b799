#include "ops/half_loops.h"

#include <cstdint>
#include <cstring>

#include "core/processor.h"
#include "ops/small_float.h"

#if PENSTOCK_HAS_AVX2_LOOPS
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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

// Each of these has: has_vectors, whether the other two may be called; they convert as many elements as make whole
// vectors, and return how many those are.
#if PENSTOCK_HAS_AVX2_LOOPS

constexpr std::size_t kHalfLanes = 8;

bool has_vectors() noexcept { return core::has_avx2(); }

PENSTOCK_TARGET_AVX2 std::size_t decode_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 2));
    _mm256_storeu_ps(reinterpret_cast<float*>(to + i * 4), _mm256_cvtph_ps(halves));
  }
  return i;
}

PENSTOCK_TARGET_AVX2 std::size_t encode_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const __m256 values = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * 4));
    const __m128i halves = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 2), halves);
  }
  return i;
}

#elif defined(__aarch64__)

constexpr std::size_t kHalfLanes = 4;

constexpr bool has_vectors() noexcept { return true; }

std::size_t decode_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const uint8x8_t halves = vld1_u8(reinterpret_cast<const std::uint8_t*>(from + i * 2));
    const float32x4_t values = vcvt_f32_f16(vreinterpret_f16_u8(halves));
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to + i * 4), vreinterpretq_u8_f32(values));
  }
  return i;
}

std::size_t encode_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const uint8x16_t values = vld1q_u8(reinterpret_cast<const std::uint8_t*>(from + i * 4));
    const float16x4_t halves = vcvt_f16_f32(vreinterpretq_f32_u8(values));
    vst1_u8(reinterpret_cast<std::uint8_t*>(to + i * 2), vreinterpret_u8_f16(halves));
  }
  return i;
}

#else

constexpr bool has_vectors() noexcept { return false; }
std::size_t decode_vectors(const std::byte*, std::byte*, std::size_t) { return 0; }
std::size_t encode_vectors(const std::byte*, std::byte*, std::size_t) { return 0; }

#endif

void decode_by_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t done = decode_vectors(from, to, count);
  decode_portable(from + done * 2, to + done * 4, count - done);
}

void encode_by_vectors(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t done = encode_vectors(from, to, count);
  encode_portable(from + done * 4, to + done * 2, count - done);
}

}  // namespace

HalfLoops portable_half_loops() noexcept { return {decode_portable, encode_portable}; }

HalfLoops fastest_half_loops() noexcept {
  return has_vectors() ? HalfLoops{decode_by_vectors, encode_by_vectors} : portable_half_loops();
}

void decode_float16(const std::byte* from, std::byte* to, std::size_t count) {
  fastest_half_loops().decode(from, to, count);
}

void encode_float16(const std::byte* from, std::byte* to, std::size_t count) {
  fastest_half_loops().encode(from, to, count);
}

}  // namespace penstock::ops
