#include "simulator/cublas/product.h"

#include <cstring>

#include "ops/small_float.h"
#include "simulator/cublas/types.h"

namespace penstock::simulator {
namespace {

/// A type whose sums are of its own kind.
template <class T>
struct Same {
  using Stored = T;
  using Sum = T;
  static Sum decode(Stored value) { return value; }
  static Stored encode(Sum value) { return value; }
};
template <class Half>
struct Halves {
  using Stored = Half;
  using Sum = float;
  static Sum decode(Stored value) { return Half::decode(value); }
  static Stored encode(Sum value) { return Half::encode(value); }
};

template <class Type>
typename Type::Sum read(const std::byte* from, std::int64_t index) {
  typename Type::Stored value{};
  std::memcpy(&value, from + index * static_cast<std::int64_t>(sizeof(value)), sizeof(value));
  return Type::decode(value);
}

template <class Type>
void write(std::byte* to, std::int64_t index, typename Type::Sum sum) {
  const typename Type::Stored value = Type::encode(sum);
  std::memcpy(to + index * static_cast<std::int64_t>(sizeof(value)), &value, sizeof(value));
}

template <class Type>
void multiply(const SimProduct& p, std::int64_t entry) {
  using Sum = typename Type::Sum;
  for (std::int64_t column = 0; column < p.n; ++column) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      Sum sum{};
      for (std::int64_t i = 0; i < p.k; ++i) {
        const std::int64_t a = p.transposed_a ? i + row * p.lda : row + i * p.lda;
        const std::int64_t b = p.transposed_b ? column + i * p.ldb : i + column * p.ldb;
        sum += read<Type>(p.a, entry * p.stride_a + a) * read<Type>(p.b, entry * p.stride_b + b);
        if (p.rounds_sums && i == p.k / 2) sum = Type::decode(Type::encode(sum));
      }
      const std::int64_t at = entry * p.stride_c + row + column * p.ldc;
      sum *= static_cast<Sum>(p.alpha);
      if (p.beta != 0) sum += static_cast<Sum>(p.beta) * read<Type>(p.c, at);
      write<Type>(p.c, at, sum);
    }
  }
}

template <class Type>
void multiply_all(const SimProduct& p) {
  for (std::int64_t entry = p.batch; entry-- > 0;) multiply<Type>(p, entry);
}

}  // namespace

std::size_t element_bytes(int type) noexcept {
  switch (type) {
    case kR16F:
    case kR16BF:
      return 2;
    case kR32F:
      return 4;
    case kR64F:
      return 8;
    default:
      return 0;
  }
}

void run_product(const PenstockSimLaunch* launch) {
  const auto& p = *static_cast<const SimProduct*>(launch->arguments[0]);
  switch (p.type) {
    case kR16F:
      return multiply_all<Halves<ops::Float16>>(p);
    case kR16BF:
      return multiply_all<Halves<ops::BFloat16>>(p);
    case kR32F:
      return multiply_all<Same<float>>(p);
    default:
      return multiply_all<Same<double>>(p);
  }
}

}  // namespace penstock::simulator
