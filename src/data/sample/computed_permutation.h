#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace penstock::data {

/// A permutation of [0, size) under a key that is computed for each number and takes no memory: a Feistel network over
/// the least even number of bits that hold the size (8 or more), walked on until it gives a number below it. Source: J.
/// Black and P. Rogaway, Ciphers with arbitrary finite domains, CT-RSA 2002.
class ComputedPermutation {
 public:
  /// 0 <= size.
  ComputedPermutation(std::int64_t size, std::uint64_t key) noexcept : size_(static_cast<std::uint64_t>(size)) {
    const int bits = size > 1 ? static_cast<int>(std::bit_width(size_ - 1)) : 1;
    half_ = std::max((bits + 1) / 2, kLeastHalf);
    mask_ = (std::uint64_t{1} << half_) - 1;
    for (std::uint64_t& of_round : keys_) {
      key += 0x9E3779B97F4A7C15U;
      of_round = mixed(key);
    }
  }

  /// 0 <= index < size.
  std::int64_t operator()(std::int64_t index) const noexcept {
    auto at = static_cast<std::uint64_t>(index);
    do {
      at = permuted(at);
    } while (at >= size_);
    return static_cast<std::int64_t>(at);
  }

 private:
  /// Vigna's splitmix64: every bit of the result depends on every bit of `x`.
  static constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }

  std::uint64_t permuted(std::uint64_t x) const noexcept {
    std::uint64_t left = x >> half_;
    std::uint64_t right = x & mask_;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mixed(right ^ key) & mask_);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  static constexpr int kRounds = 6;
  static constexpr int kLeastHalf = 4;  ///< bits; with fewer the orders of 5 or 6 numbers are not equally likely
  std::uint64_t size_;
  int half_ = 1;
  std::uint64_t mask_ = 1;
  std::uint64_t keys_[kRounds] = {};
};

}  // namespace penstock::data
