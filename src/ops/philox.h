#pragma once

// Random bits and the numbers made of them, for hosts and devices alike: see docs/design/operations.md.

#include <array>
#include <cstdint>

#include "ops/exact.h"
#include "ops/math.h"

namespace penstock::ops {

/// The four words of one block of the stream.
struct RandomWords {
  std::uint32_t a, b, c, d;

  constexpr std::uint64_t low() const noexcept { return a | std::uint64_t{b} << 32; }
  constexpr std::uint64_t high() const noexcept { return c | std::uint64_t{d} << 32; }
};

/// Philox4x32-10 of the counter (block, 0): Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
/// 3".
[[gnu::always_inline]] constexpr RandomWords philox(std::uint64_t seed, std::uint64_t block) noexcept {
  RandomWords x{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
  auto key = static_cast<std::uint32_t>(seed);
  auto other_key = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * x.a;
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * x.c;
    x = {static_cast<std::uint32_t>(right >> 32) ^ x.b ^ key, static_cast<std::uint32_t>(right),
         static_cast<std::uint32_t>(left >> 32) ^ x.d ^ other_key, static_cast<std::uint32_t>(left)};
    key += 0x9E3779B9U;
    other_key += 0xBB67AE85U;
  }
  return x;
}

[[gnu::always_inline]] constexpr float uniform_of(std::uint32_t word, int bits) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(word >> (32 - bits))) *
         power_of_two<float>(-static_cast<std::int32_t>(bits));
}
[[gnu::always_inline]] constexpr double uniform_of(std::uint64_t word) noexcept {
  return static_cast<double>(static_cast<std::int64_t>(word >> 11)) * 0x1p-53;
}

template <class Real>
struct NormalPair {
  Real first;
  Real second;
};

/// Box and Muller. `radius_u` in (0, 1], `angle_u` in [0, 1).
template <class Real>
[[gnu::always_inline]] constexpr NormalPair<Real> normals_of(Real radius_u, Real angle_u) noexcept {
  const Real radius = sqrt_of(Real{-2} * log_of(radius_u));
  const SineCosine<Real> angle = sine_cosine_of_turns(angle_u);
  return {radius * angle.cosine, radius * angle.sine};
}

[[gnu::always_inline]] constexpr NormalPair<float> normals_of_words(std::uint32_t radius,
                                                                    std::uint32_t angle) noexcept {
  // Halves of 16 bits are exact, and their sum is rounded once.
  const float high = static_cast<float>(static_cast<std::int32_t>(radius >> 16)) * 0x1p-16F;
  const float low = static_cast<float>(static_cast<std::int32_t>(radius & 0xFFFFU)) * 0x1p-32F + 0x1p-33F;
  return normals_of<float>(high + low, uniform_of(angle, 24));
}
[[gnu::always_inline]] constexpr NormalPair<double> normals_of_words(std::uint64_t radius,
                                                                     std::uint64_t angle) noexcept {
  return normals_of<double>(uniform_of(radius) + 0x1p-54, uniform_of(angle));
}

/// What is drawn. Of one block: four float32 or two float64 or int64.
enum class Draw : std::uint8_t { kUniform, kNormal };

[[gnu::always_inline]] constexpr std::array<float, 4> draw_floats(Draw draw, RandomWords words, int bits) noexcept {
  if (draw == Draw::kUniform) {
    return {uniform_of(words.a, bits), uniform_of(words.b, bits), uniform_of(words.c, bits), uniform_of(words.d, bits)};
  }
  const NormalPair<float> one = normals_of_words(words.a, words.b);
  const NormalPair<float> two = normals_of_words(words.c, words.d);
  return {one.first, one.second, two.first, two.second};
}

[[gnu::always_inline]] constexpr std::array<double, 2> draw_doubles(Draw draw, RandomWords words) noexcept {
  if (draw == Draw::kUniform) return {uniform_of(words.low()), uniform_of(words.high())};
  const NormalPair<double> pair = normals_of_words(words.low(), words.high());
  return {pair.first, pair.second};
}

/// low plus a number of [0, range). The bias is below range / 2^64.
[[gnu::always_inline]] constexpr std::array<std::int64_t, 2> draw_integers(RandomWords words, std::int64_t low,
                                                                           std::uint64_t range) noexcept {
  const auto at = [&](std::uint64_t word) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + multiply_high(word, range));
  };
  return {at(words.low()), at(words.high())};
}

}  // namespace penstock::ops
