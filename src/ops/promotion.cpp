// PyTorch's type promotion. Operands count in three ranks: tensors with dimensions, tensors without, numbers. A lower
// rank changes the result only where its type is of a higher kind (bool, integers, floats, complex).

#include "ops/promotion.h"

#include <optional>
#include <utility>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

using Code = DType::Code;

bool is_float8(const DType& dtype) noexcept { return dtype.is_floating() && dtype.itemsize() == 1; }

bool is_wide_unsigned(const DType& dtype) noexcept {
  return dtype.is_integer() && !dtype.is_signed() && dtype.itemsize() > 1;
}

/// bool, integers, floats, complex: a type of a higher kind takes all of a lower one's numbers, if not exactly.
int kind_of(const DType& dtype) noexcept {
  if (dtype == DType::boolean) return 0;
  if (dtype.is_integer()) return 1;
  return dtype.is_floating() ? 2 : 3;
}

DType promote_integers(const DType& a, const DType& b) noexcept {
  if (a.is_signed() == b.is_signed()) return a.itemsize() >= b.itemsize() ? a : b;
  const DType& with_sign = a.is_signed() ? a : b;
  return with_sign == DType::int8 ? DType::int16 : with_sign;
}

DType promote_floats(const DType& a, const DType& b) noexcept {
  if (a.itemsize() != b.itemsize()) return a.itemsize() > b.itemsize() ? a : b;
  return DType::float32;  // the halves have no more in common
}

DType complex_of(const DType& real) noexcept {
  if (real == DType::float64) return DType::complex128;
  return real == DType::float16 ? DType::complex32 : DType::complex64;
}

[[noreturn]] void throw_no_common_type(const DType& a, const DType& b) {
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("{} and {} have no common type; convert one of them with to()", a.name(), b.name()));
}

DType promote(const DType& a, const DType& b) {
  if (a == b) return a;
  if (is_float8(a) || is_float8(b)) throw_no_common_type(a, b);
  const auto [low, high] = kind_of(a) <= kind_of(b) ? std::pair(a, b) : std::pair(b, a);
  const int kind = kind_of(high);
  const bool unsigned_meets_other = is_wide_unsigned(low) || is_wide_unsigned(high);
  if (unsigned_meets_other && kind != 2) throw_no_common_type(a, b);
  if (kind_of(low) < 2 && kind_of(low) < kind) return high;
  if (kind == 1) return promote_integers(low, high);
  if (kind == 2) return promote_floats(low, high);
  const DType other = low.is_complex() ? low : complex_of(low);
  return other.itemsize() > high.itemsize() ? other : high;
}

/// What one rank of operands has come to; nothing where there is none of it.
using FoundDType = std::optional<DType>;

void add(FoundDType& found, const DType& dtype) { found = found ? promote(*found, dtype) : dtype; }

/// `higher` decides, unless `lower` is of a higher kind.
FoundDType combine(const FoundDType& higher, const FoundDType& lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (higher->is_complex()) return higher;
  if (higher->is_floating()) return lower->is_complex() ? complex_of(*higher) : *higher;
  if (*higher == DType::boolean) return promote(*higher, *lower);
  return kind_of(*lower) > kind_of(*higher) ? lower : higher;
}

}  // namespace

DType compute_type(const DType& dtype) noexcept {
  if (dtype == DType::boolean) return DType::uint8;
  if (dtype == DType::complex32) return DType::complex64;
  return dtype.is_floating() && dtype.itemsize() < 4 ? DType::float32 : dtype;
}

DType real_type(const DType& dtype) noexcept {
  if (dtype == DType::complex128) return DType::float64;
  if (dtype == DType::complex64) return DType::float32;
  return dtype == DType::complex32 ? DType::float16 : dtype;
}

DType floating_type(const DType& dtype) noexcept {
  return dtype.is_floating() || dtype.is_complex() ? dtype : DType::float32;
}

DType default_type(const Scalar& number) noexcept {
  switch (number.kind()) {
    case Scalar::Kind::kBool:
      return DType::boolean;
    case Scalar::Kind::kInteger:
      return DType::int64;
    case Scalar::Kind::kUnsigned:
      return DType::uint64;
    case Scalar::Kind::kReal:
      return DType::float32;
    default:
      return DType::complex64;
  }
}

void require_numeric(const DType& dtype, const char* operation) {
  if (dtype.is_numeric()) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("{} of {}: its values are not bool, integer, float or complex", operation, dtype.name()));
}

}  // namespace penstock::ops

namespace penstock {

DType promote_types(const DType& a, const DType& b) {
  ops::require_numeric(a, "promotion");
  ops::require_numeric(b, "promotion");
  return ops::promote(a, b);
}

DType result_type(const Operand& a, const Operand& b) {
  ops::FoundDType with_dimensions;
  ops::FoundDType without;
  ops::FoundDType numbers;
  for (const Operand* operand : {&a, &b}) {
    if (operand->tensor() == nullptr) {
      ops::add(numbers, ops::default_type(operand->number()));
    } else {
      ops::require_numeric(operand->tensor()->dtype(), "promotion");
      ops::add(operand->tensor()->rank() > 0 ? with_dimensions : without, operand->tensor()->dtype());
    }
  }
  return *ops::combine(with_dimensions, ops::combine(without, numbers));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  Shape out = a.rank() >= b.rank() ? a : b;
  const Shape& other = a.rank() >= b.rank() ? b : a;
  const std::size_t extra = out.rank() - other.rank();
  for (std::size_t d = 0; d < other.rank(); ++d) {
    std::int64_t& size = out[extra + d];
    if (size != other[d] && size != 1 && other[d] != 1) {
      throw Error(
          ErrorCode::kShapeMismatch,
          core::format("shapes {} and {} cannot be broadcast: dimension {} is {} in one and {} in the other, expected "
                       "equal sizes or 1",
                       a.to_string(), b.to_string(), extra + d, size, other[d]));
    }
    if (size == 1) size = other[d];
  }
  return out;
}

}  // namespace penstock
