// Fills the rest of a slot when a sample is smaller than the slot. One dimension is filled after the other, from the
// last to the first, because then the values to repeat or reflect along a dimension are complete in the dimensions
// after it.

#include "data/collate/padding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/format.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::data {

namespace {

bool holds(double value, const DType& dtype) {
  if (value == 0) return true;
  if (dtype.code() == DType::Code::kBool) return value == 1;
  if (dtype.is_integer()) {
    const int bits = static_cast<int>(dtype.bits());
    const double low = dtype.is_signed() ? -std::ldexp(1.0, bits - 1) : 0.0;
    return value == std::trunc(value) && value >= low && value < std::ldexp(1.0, dtype.is_signed() ? bits - 1 : bits);
  }
  return dtype.is_numeric();
}

/// `count` elements of `itemsize` bytes at `to`, all like the one at `element`.
void repeat(std::byte* to, const std::byte* element, std::size_t itemsize, std::uint64_t count) {
  const std::size_t bytes = itemsize * count;
  if (bytes == 0) return;
  std::memcpy(to, element, itemsize);
  for (std::size_t done = itemsize; done < bytes;) {
    const std::size_t part = std::min(done, bytes - done);
    std::memcpy(to + done, to, part);
    done += part;
  }
}

void fill_constant(const Padding& padding, std::byte* to, std::size_t itemsize, std::uint64_t bytes) {
  const bool zero =
      std::all_of(padding.value.begin(), padding.value.end(), [](std::byte b) { return b == std::byte{}; });
  if (zero || itemsize > padding.value.size()) {
    std::memset(to, 0, bytes);
  } else {
    repeat(to, padding.value.data(), itemsize, bytes / itemsize);
  }
}

/// The own element that stands at position `at` >= own of a mirrored row.
std::uint64_t mirrored(std::uint64_t at, std::uint64_t own) {
  const std::uint64_t period = 2 * (own - 1);
  const std::uint64_t phase = at % period;
  return phase < own ? phase : period - phase;
}

}  // namespace

std::array<std::byte, 16> element_bytes(double value, const DType& dtype) {
  std::array<std::byte, 16> out{};
  if (!holds(value, dtype)) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("the padding value {} is not a value of {}; choose one that is", value, dtype.name()));
  }
  if (value == 0 && !std::signbit(value)) return out;
  if (!dtype.is_numeric()) return out;
  const Tensor one = Tensor::of({value}).to(dtype);
  std::memcpy(out.data(), one.data(), dtype.itemsize());
  return out;
}

namespace {

/// Along one dimension, where those before have the elements of `own` and those behind are full.
void fill_dim(const Padding& padding, const Shape& own, std::size_t dim, std::size_t itemsize, std::byte* slot) {
  std::uint64_t inner = itemsize;  // bytes of one step along dim
  for (std::size_t d = dim + 1; d < own.rank(); ++d) inner *= static_cast<std::uint64_t>(padding.slot[d]);
  const auto length = static_cast<std::uint64_t>(padding.slot[dim]);
  const auto first = static_cast<std::uint64_t>(own[dim]);
  if (first >= length || inner == 0) return;
  const std::uint64_t places = outer_places(own, dim);
  for (std::uint64_t place = 0; place < places; ++place) {
    std::byte* const row = slot + outer_offset(own, padding.slot, dim, inner, place);
    std::byte* const tail = row + first * inner;
    switch (padding.mode) {
      case PadMode::kConstant:
        fill_constant(padding, tail, itemsize, (length - first) * inner);
        break;
      case PadMode::kReplicate:
        repeat(tail, tail - inner, inner, length - first);
        break;
      case PadMode::kReflect:
        for (std::uint64_t at = first; at < length; ++at) {
          std::memcpy(row + at * inner, row + mirrored(at, first) * inner, inner);
        }
        break;
    }
  }
}

}  // namespace

Shape own_shape(const Padding& padding, const Shape& shape) {
  Shape own = shape;
  for (std::size_t d = 0; d < own.rank(); ++d) own[d] = std::min(own[d], padding.slot[d]);
  return own;
}

std::uint64_t outer_places(const Shape& own, std::size_t dim) {
  std::uint64_t places = 1;
  for (std::size_t d = 0; d < dim; ++d) places *= static_cast<std::uint64_t>(own[d]);
  return places;
}

std::uint64_t outer_offset(const Shape& own, const Shape& slot, std::size_t dim, std::uint64_t step, std::uint64_t n) {
  std::uint64_t offset = 0;
  std::uint64_t stride = step * static_cast<std::uint64_t>(slot[dim]);
  for (std::size_t d = dim; d-- > 0;) {
    const auto count = static_cast<std::uint64_t>(own[d]);
    offset += n % count * stride;
    n /= count;
    stride *= static_cast<std::uint64_t>(slot[d]);
  }
  return offset;
}

// The innermost dimension comes first, so that what is repeated or mirrored further out is whole.
void fill_padding(const Padding& padding, const Shape& own, std::size_t itemsize, std::byte* slot) {
  Shape filled = own;
  for (std::size_t dim = own.rank(); dim-- > 0;) {
    fill_dim(padding, filled, dim, itemsize, slot);
    filled[dim] = padding.slot[dim];
  }
}

}  // namespace penstock::data
