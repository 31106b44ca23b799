#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "core/format.h"
#include "ops/blocks.h"
#include "ops/convert.h"
#include "ops/device_ops.h"
#include "ops/kernels.h"
#include "ops/operands.h"
#include "ops/promotion.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock::ops {
namespace {

/// More elements than any memory holds.
constexpr double kMaxCount = 0x1p62;

/// Whether an integer type of so many bits holds the number.
bool holds(const DType& dtype, const Scalar& value) {
  const auto bits = static_cast<int>(dtype.itemsize() * 8);
  if (value.kind() == Scalar::Kind::kUnsigned) return dtype == DType::uint64;
  if (value.is_integral()) {
    const std::int64_t number = value.integer();
    if (bits == 64) return dtype.is_signed() || number >= 0;
    const std::int64_t limit = std::int64_t{1} << (dtype.is_signed() ? bits - 1 : bits);
    return number < limit && number >= (dtype.is_signed() ? -limit : 0);
  }
  const double number = std::trunc(value.to_double());
  const double limit = std::ldexp(1.0, dtype.is_signed() ? bits - 1 : bits);
  return number < limit && number >= (dtype.is_signed() ? -limit : 0.0);
}

std::string written(const Scalar& value) {
  if (value.kind() == Scalar::Kind::kUnsigned) return std::to_string(static_cast<std::uint64_t>(value.integer()));
  if (value.is_integral()) return std::to_string(value.integer());
  const std::string real = core::format("{}", value.to_double());
  return value.kind() == Scalar::Kind::kComplex ? real + core::format("{:+}j", value.real().imag()) : real;
}

[[noreturn]] void throw_bad_range(const Scalar& start, const Scalar& stop, const Scalar& step, const char* wanted) {
  throw Error(ErrorCode::kInvalidArgument,
              core::format("arange from {} to {} by {}: {}", written(start), written(stop), written(step), wanted));
}

/// Number of start + i * step before stop.
std::int64_t count_of(const Scalar& start, const Scalar& stop, const Scalar& step) {
  const double span = stop.to_double() - start.to_double();
  const double count = std::ceil(span / step.to_double());
  if (step.to_double() == 0) throw_bad_range(start, stop, step, "a step other than 0 was expected");
  if (!std::isfinite(span) || !std::isfinite(step.to_double())) {
    throw_bad_range(start, stop, step, "finite numbers were expected");
  }
  // Integers beyond 2^53 are compared and counted exactly.
  const bool integers = start.is_integral() && stop.is_integral() && step.is_integral();
  const bool ends_at_once = integers ? start.integer() == stop.integer() : span == 0;
  const bool is_upward = integers ? start.integer() < stop.integer() : span > 0;
  if (!ends_at_once && is_upward != (step.to_double() > 0)) {
    throw_bad_range(start, stop, step, "a step in the direction of the stop was expected");
  }
  if (count > kMaxCount) throw_bad_range(start, stop, step, "fewer elements were expected");
  if (!integers) return static_cast<std::int64_t>(count);
  const auto magnitude = [](std::int64_t from, std::int64_t to) {
    return from < to ? static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)
                     : static_cast<std::uint64_t>(from) - static_cast<std::uint64_t>(to);
  };
  const std::uint64_t distance = magnitude(start.integer(), stop.integer());
  const std::uint64_t stride = magnitude(0, step.integer());
  return static_cast<std::int64_t>(distance / stride + (distance % stride != 0 ? 1 : 0));
}

template <class T>
void fill_range(const Tensor& out, T start, T step) {
  if (!on_host(out)) return range_on_device(*launcher_for(out.device()), out, start, step);
  for_each_range(out.numel(), [&](std::int64_t begin, std::int64_t end) {
    BlockWriter to(out, DType::of<T>().code());
    for_each_block(begin, end, [&](std::int64_t first, std::size_t count) {
      to.write(first, count, [&](std::byte* place) {
        for (std::size_t i = 0; i < count; ++i) {
          const T value = start + static_cast<T>(first + static_cast<std::int64_t>(i)) * step;
          std::memcpy(place + i * sizeof(T), &value, sizeof(T));
        }
      });
    });
  });
}

}  // namespace

void require_in_range(const Scalar& value, const DType& dtype) {
  const bool is_complex = value.kind() == Scalar::Kind::kComplex;
  const bool takes_parts = dtype.is_complex() || dtype == DType::boolean;
  const bool loses_part = is_complex && !takes_parts && value.real().imag() != 0;
  if (!loses_part && (!dtype.is_integer() || holds(dtype, value))) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} does not fit {}; choose a wider dtype", written(value), dtype.name()));
}

}  // namespace penstock::ops

namespace penstock {

Tensor ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1, std::move(dtype), device); }

Tensor full(const Shape& shape, const Scalar& value, std::optional<DType> dtype, Device device) {
  const DType type = std::move(dtype).value_or(ops::default_type(value));
  ops::require_numeric(type, "full");
  ops::require_in_range(value, type);
  const Tensor given = value.to_tensor();
  std::array<std::byte, 16> element{};
  ops::convert(given.dtype().code(), given.data(), type.code(), element.data(), 1);
  Tensor out = Tensor::empty(shape, type, device);
  ops::fill(out, std::span(element).first(type.itemsize()));
  return out;
}

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<DType> dtype, Device device) {
  for (const Scalar* number : {&start, &stop, &step}) {
    if (number->kind() == Scalar::Kind::kUnsigned) {
      ops::throw_bad_range(start, stop, step, "integers below 2^63 were expected");
    }
    if (number->kind() == Scalar::Kind::kComplex) {
      ops::throw_bad_range(start, stop, step, "real numbers were expected, and one of these is complex");
    }
  }
  const bool integers = start.is_integral() && stop.is_integral() && step.is_integral();
  const DType type = std::move(dtype).value_or(integers ? DType::int64 : DType::float32);
  ops::require_numeric(type, "arange");
  const std::int64_t count = ops::count_of(start, stop, step);
  Tensor out = Tensor::empty(Shape{count}, type, device);
  if (count > 0 && integers) {
    ops::require_in_range(start, type);
    ops::require_in_range(start.integer() + (count - 1) * step.integer(), type);
    ops::fill_range(out, start.integer(), step.integer());
  } else if (count > 0) {
    ops::require_in_range(start.to_double(), type);
    ops::require_in_range(start.to_double() + static_cast<double>(count - 1) * step.to_double(), type);
    ops::fill_range(out, start.to_double(), step.to_double());
  }
  return out;
}

}  // namespace penstock
