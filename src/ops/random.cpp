#include "penstock/random.h"

#include <array>
#include <cstring>
#include <random>
#include <span>

#include "core/format.h"
#include "core/processor.h"
#include "ops/blocks.h"
#include "ops/device_ops.h"
#include "ops/operands.h"
#include "ops/overflow.h"
#include "ops/philox.h"
#include "ops/promotion.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using ops::Draw;
using ops::RandomWords;

/// What `values` makes of consecutive blocks of the stream, for as many as a Block of values takes. Words lie by their
/// place, not by block, so that the loops vectorise.
template <class Value, class Values>
[[gnu::always_inline]] inline void draw_block(std::uint64_t seed, std::uint64_t first, Values values, Value* to) {
  constexpr std::size_t per_block = sizeof(RandomWords) / sizeof(Value);
  constexpr std::size_t blocks = ops::kBlock / per_block;
  std::array<std::uint32_t, blocks> a;
  std::array<std::uint32_t, blocks> b;
  std::array<std::uint32_t, blocks> c;
  std::array<std::uint32_t, blocks> d;
  for (std::size_t i = 0; i < blocks; ++i) {
    const RandomWords words = ops::philox(seed, first + i);
    a[i] = words.a;
    b[i] = words.b;
    c[i] = words.c;
    d[i] = words.d;
  }
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto drawn = values(RandomWords{a[i], b[i], c[i], d[i]});
    for (std::size_t k = 0; k < per_block; ++k) to[i * per_block + k] = drawn[k];
  }
}

template <class Value, class Values>
PENSTOCK_TARGET_AVX2 void draw_block_avx2(std::uint64_t seed, std::uint64_t first, Values values, Value* to) {
  draw_block(seed, first, values, to);
}

/// Fills `out` with what `values` makes of each block of the stream, in order.
template <class Value, class Values>
void draw(const Tensor& out, std::uint64_t seed, std::uint64_t first_block, Values values) {
  constexpr std::int64_t per_block = sizeof(RandomWords) / sizeof(Value);
  ops::for_each_range(out.numel(), [&](std::int64_t begin, std::int64_t end) {
    ops::BlockWriter to(out, DType::of<Value>().code());
    std::array<Value, ops::kBlock> drawn;
    ops::for_each_block(begin, end, [&](std::int64_t first, std::size_t count) {
      const std::uint64_t block = first_block + static_cast<std::uint64_t>(first / per_block);
      if (core::has_avx2()) {
        draw_block_avx2(seed, block, values, drawn.data());
      } else {
        draw_block(seed, block, values, drawn.data());
      }
      to.write(first, count, [&](std::byte* place) { std::memcpy(place, drawn.data(), count * sizeof(Value)); });
    });
  });
}

/// High bits of a word that make a uniform number, so that every value is exact in the type.
int uniform_bits(const DType& dtype) noexcept {
  if (dtype == DType::bfloat16) return 8;
  return dtype == DType::float16 ? 11 : 24;
}

Tensor real_numbers(Draw kind, const char* name, const Shape& shape, Generator& generator, const DType& dtype,
                    Device device) {
  if (!dtype.is_floating() || dtype.itemsize() < 2) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} of {}: float16, bfloat16, float32 or float64 was expected", name, dtype.name()));
  }
  Tensor out = Tensor::empty(shape, dtype, device);
  const bool wide = dtype == DType::float64;
  const std::uint64_t first = generator.take(blocks_taken(out.numel(), dtype));
  const int bits = uniform_bits(dtype);
  if (!ops::on_host(out)) {
    const auto launcher = ops::launcher_for(device);
    const ops::Drawing drawing{generator.seed(), first};
    if (wide) {
      ops::draw_doubles_on_device(*launcher, out, drawing, kind);
    } else {
      ops::draw_floats_on_device(*launcher, out, drawing, kind, bits);
    }
  } else if (wide) {
    draw<double>(out, generator.seed(), first,
                 [kind](const RandomWords& words) { return ops::draw_doubles(kind, words); });
  } else {
    draw<float>(out, generator.seed(), first,
                [kind, bits](const RandomWords& words) { return ops::draw_floats(kind, words, bits); });
  }
  return out;
}

/// kInvalidArgument for a bound of random integers that the type has no number for.
void require_drawable(std::int64_t bound, const DType& dtype) {
  ops::require_in_range(bound, dtype);
  const bool is_lost = ops::find_overflow(DType::Code::kInt64, std::as_bytes(std::span(&bound, 1)).data(),
                                          dtype.code(), 1) == 0;
  if (!is_lost && (dtype != DType::boolean || bound == 0 || bound == 1)) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("randint of {}: {} does not fit; choose a wider dtype", dtype.name(), bound));
}

}  // namespace

Generator Generator::from_entropy() {
  std::random_device entropy;
  const std::uint64_t high = entropy();
  return Generator(high << 32 | entropy());
}

std::uint64_t blocks_taken(std::int64_t count, const DType& drawn) noexcept {
  // A word for each, of 64-bit types two.
  const std::uint64_t per_block = drawn.itemsize() == 8 ? 2 : 4;
  return (static_cast<std::uint64_t>(count) + per_block - 1) / per_block;
}

Tensor rand(const Shape& shape, Generator& generator, const DType& dtype, Device device) {
  return real_numbers(Draw::kUniform, "rand", shape, generator, dtype, device);
}

Tensor randn(const Shape& shape, Generator& generator, const DType& dtype, Device device) {
  return real_numbers(Draw::kNormal, "randn", shape, generator, dtype, device);
}

Tensor randint(Integer low, Integer high, const Shape& shape, Generator& generator, const DType& dtype, Device device) {
  if (low >= high) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("randint from {} to {}: the first must be less than the second", low, high));
  }
  ops::require_numeric(dtype, "randint");
  require_drawable(low, dtype);
  require_drawable(high - 1, dtype);
  Tensor out = Tensor::empty(shape, dtype, device);
  const std::uint64_t first = generator.take(blocks_taken(out.numel(), DType::int64));
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (!ops::on_host(out)) {
    ops::draw_integers_on_device(*ops::launcher_for(device), out, {generator.seed(), first}, low, range);
    return out;
  }
  draw<std::int64_t>(out, generator.seed(), first,
                     [low, range](const RandomWords& words) { return ops::draw_integers(words, low, range); });
  return out;
}

}  // namespace penstock
