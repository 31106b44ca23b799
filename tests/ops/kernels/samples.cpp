#include "ops/kernels/samples.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/promotion.h"
#include "penstock/ops.h"
#include "penstock/random.h"
#include "support/tensors.h"

namespace penstock::test {
namespace {

void put(const Tensor& to, std::int64_t place, const Tensor& from, std::int64_t index) {
  const std::size_t width = to.dtype().itemsize();
  std::memcpy(to.data() + static_cast<std::size_t>(place) * width,
              from.data() + static_cast<std::size_t>(index) * width, width);
}

/// The parts of contiguous complex numbers.
Tensor parts_of(const Tensor& tensor) {
  const DType part = ops::real_type(tensor.dtype());
  const Shape shape{2 * tensor.numel()};
  return Tensor(tensor.buffer(), part, shape, shape.contiguous_strides());
}

}  // namespace

Tensor edges(const DType& dtype) {
  std::vector<double> numbers = {0,       0.5,     1,   1.5, 2.5,   3,     1e-45, 1e-310,
                                 0x1p-14, 0x1p-24, 448, 464, 65504, 65519, 65520};
  for (const int power : {7, 8, 15, 16, 24, 25, 31, 32, 53, 54, 63, 64, 127, 128}) {
    for (const double beside : {-1.0, -0.5, 0.0, 0.5, 1.0}) numbers.push_back(std::ldexp(1.0, power) + beside);
  }
  numbers.push_back(std::numeric_limits<double>::infinity());
  const std::size_t positive = numbers.size();
  for (std::size_t i = 0; i < positive; ++i) numbers.push_back(-numbers[i]);
  numbers.push_back(std::numeric_limits<double>::quiet_NaN());
  return Tensor::of<double>(numbers).to(dtype);
}

Tensor sample(const Shape& shape, const DType& dtype, std::uint64_t seed) {
  Generator generator(seed);
  const Tensor out = (randn(shape, generator, DType::float64) * 5).to(dtype);
  const Tensor any = numbered_tensor(shape, dtype, seed);
  const Tensor turns = edges(dtype);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    if (i % 3 == 0) put(out, i, any, i);
    if (i % 5 == 1) put(out, i, turns, (i / 5) % turns.numel());
  }
  return out;
}

Tensor patterns(const DType& dtype) {
  const std::size_t width = dtype.itemsize();
  if (width > 2 || dtype == DType::boolean) return numbered_tensor({999}, dtype, 12);
  const std::uint32_t step = width == 1 ? 1 : 13;
  const Tensor out = Tensor::empty({(1 << (8 * width)) / step}, dtype);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(i) * step;
    std::memcpy(out.data() + static_cast<std::size_t>(i) * width, &bits, width);
  }
  return out;
}

Tensor with_gaps(const DType& dtype, std::size_t rank, std::uint64_t seed) {
  Shape whole;
  for (std::size_t d = 0; d < rank; ++d) whole.push_back(d % 3 == 0 ? 4 : 3);
  Tensor view = sample(whole, dtype, seed);
  for (std::size_t d = 0; d < rank; ++d) view = view.slice(static_cast<std::int64_t>(d), 0, whole[d] - 1);
  return view;
}

bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (Tensor::identical(a, b)) return true;
  if (a.dtype().is_complex()) return same(parts_of(a), parts_of(b));
  if (!a.dtype().is_floating()) return false;
  const Tensor x = a.to(DType::float64);
  const Tensor y = b.to(DType::float64);
  // Zeros of either sign are equal numbers and different results.
  const Tensor signs = (1.0 / x == 1.0 / y) + (x != 0.0);
  return sum(((x == y) * (signs != 0)) + ((x != x) * (y != y))).item<std::int64_t>() == a.numel();
}

}  // namespace penstock::test
