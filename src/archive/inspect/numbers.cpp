#include "archive/inspect/numbers.h"

#include <array>
#include <complex>

#include "ops/convert.h"

namespace penstock::archive {

bool fits_double(const DType& dtype) noexcept {
  return dtype.is_numeric() && !dtype.is_complex() && dtype != DType::int64 && dtype != DType::uint64;
}

bool fits_float(const DType& dtype) noexcept {
  if (dtype.is_floating()) return dtype != DType::float64;
  return dtype == DType::boolean || (dtype.is_integer() && dtype.itemsize() <= 2);
}

const std::byte* as_floats(const DType& dtype, const std::byte* from, std::array<float, kBlock>& room) {
  if (dtype == DType::float32) return from;
  auto* const to = reinterpret_cast<std::byte*>(room.data());
  ops::convert(dtype.code(), from, DType::Code::kFloat32, to, kBlock);
  return to;
}

void to_doubles(const DType& dtype, const std::byte* from, double* to, std::size_t count) {
  ops::convert(dtype.code(), from, DType::Code::kFloat64, reinterpret_cast<std::byte*>(to), count);
}

void to_complex(const DType& dtype, const std::byte* from, double* real, double* imaginary, std::size_t count) {
  std::array<std::complex<double>, kBlock> wide;
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t now = count - done < kBlock ? count - done : kBlock;
    ops::convert(dtype.code(), from + done * dtype.itemsize(), DType::Code::kComplex128,
                 reinterpret_cast<std::byte*>(wide.data()), now);
    for (std::size_t i = 0; i < now; ++i) {
      real[done + i] = wide[i].real();
      imaginary[done + i] = wide[i].imag();
    }
  }
}

}  // namespace penstock::archive
