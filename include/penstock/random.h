#pragma once

/// Random tensors: `rand`, `randn` and `randint` draw from a Generator, which you make from a seed. The order of
/// samples in a dataset is something else: see `sampler::random` in sampler.h.

#include <cstdint>

#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/shape.h"
#include "penstock/tensor.h"

namespace penstock {

/// A stream of random bits: Philox4x32-10 (Salmon et al., SC 2011) under a 64-bit seed. Block b of the stream is the
/// four 32-bit words of the counter (b, 0); a call that needs n blocks takes the next n. The same seed and calls give
/// the same values on every device and with any number of threads; docs/design/operations.md says how words become
/// values. Not thread-safe: one generator to a thread.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) noexcept : seed_(seed) {}
  /// Seeded by the operating system: another one each time.
  static Generator from_entropy();

  std::uint64_t seed() const noexcept { return seed_; }
  /// Blocks taken so far; with the seed it is the whole state.
  std::uint64_t offset() const noexcept { return offset_; }
  void set_offset(std::uint64_t blocks) noexcept { offset_ = blocks; }
  /// Starts anew under `seed`.
  void manual_seed(std::uint64_t seed) noexcept { *this = Generator(seed); }
  /// Takes `blocks` blocks and returns the first.
  std::uint64_t take(std::uint64_t blocks) noexcept {
    const std::uint64_t first = offset_;
    offset_ += blocks;
    return first;
  }

 private:
  std::uint64_t seed_;
  std::uint64_t offset_ = 0;
};

/// Blocks that `count` values of type `drawn` take. Values of rand and randn are drawn in their own type, those of
/// randint as int64.
std::uint64_t blocks_taken(std::int64_t count, const DType& drawn) noexcept;

/// Uniform in [0, 1): every multiple of 2^-24 (float64: 2^-53, float16: 2^-11, bfloat16: 2^-8) is equally likely.
/// kInvalidArgument unless the type is float32 or one of these three.
Tensor rand(const Shape& shape, Generator& generator, const DType& dtype = DType::float32, Device device = {});
/// Normal, mean 0 and variance 1, by Box and Muller; the same types.
Tensor randn(const Shape& shape, Generator& generator, const DType& dtype = DType::float32, Device device = {});
/// Integers of [low, high), converted to `dtype`. kInvalidArgument unless low < high and both ends fit it.
Tensor randint(Integer low, Integer high, const Shape& shape, Generator& generator, const DType& dtype = DType::int64,
               Device device = {});

}  // namespace penstock
