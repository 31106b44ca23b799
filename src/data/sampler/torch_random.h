#pragma once

// The random numbers of torch's samplers, drawn exactly as PyTorch draws them, so that orders of one seed are equal.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>

namespace penstock::data {

/// PyTorch's CPU generator: MT19937, of whose seed the low 32 bits count. Source: ATen/core/MT19937RNGEngine.h and
/// ATen/CPUGeneratorImpl.cpp. Not thread-safe.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  std::uint32_t random() { return static_cast<std::uint32_t>(engine_()); }
  /// Two outputs, the first on top.
  std::uint64_t random64() {
    const std::uint64_t high = random();
    return high << 32 | random();
  }
  /// A double in [0, 1) from 53 bits.
  double uniform() { return static_cast<double>(random64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53; }

 private:
  std::mt19937 engine_;
};

// Of the following, T is std::uint32_t or std::int64_t; values must fit it.

/// torch.randperm(out.size(), generator): the algorithm changes at kLargePermutation. Source: randperm in
/// ATen/native/TensorFactories.cpp.
template <class T>
void randperm(std::span<T> out, Generator& generator);
inline constexpr std::int64_t kLargePermutation = std::numeric_limits<std::uint32_t>::max() / 20;
/// The part of randperm for fewer that decides the indices from `begin` to `end`, those before being decided; `out`
/// begins as 0, 1, ...
template <class T>
void permute(std::span<T> out, std::size_t begin, std::size_t end, Generator& generator);
/// The algorithm for large n, at any n: inside-out Fisher-Yates.
template <class T>
void randperm_inside_out(std::span<T> out, Generator& generator);
/// torch.randint(high, (out.size(),), generator): 32 bits a number below 2^28, else 64. Source: random_from_to in
/// ATen/native/cpu/DistributionTemplates.h.
template <class T>
void randint(std::int64_t high, std::span<T> out, Generator& generator);

}  // namespace penstock::data
