#pragma once

// Elements of any real type in a device's memory.

#include <cstddef>
#include <cstdint>

#include "ops/element_ops.h"
#include "ops/kernels/kernel.h"
#include "ops/kernels/parameters.h"
#include "ops/machine_convert.h"
#include "ops/small_float.h"

namespace penstock::ops {

using Code = DType::Code;

template <class T>
PENSTOCK_DEVICE inline T read(const std::byte* at) {
  return *reinterpret_cast<const T*>(at);
}
template <class T>
PENSTOCK_DEVICE inline void write(std::byte* at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

/// A real element as To, one of the types that C++ has: converted as ops::convert does it.
template <class To>
PENSTOCK_DEVICE inline To load(const std::byte* at, Code type) {
  switch (type) {
    case Code::kBool:
      return machine_convert<To>(read<Bool>(at));
    case Code::kUInt8:
      return machine_convert<To>(read<std::uint8_t>(at));
    case Code::kUInt16:
      return machine_convert<To>(read<std::uint16_t>(at));
    case Code::kUInt32:
      return machine_convert<To>(read<std::uint32_t>(at));
    case Code::kUInt64:
      return machine_convert<To>(read<std::uint64_t>(at));
    case Code::kInt8:
      return machine_convert<To>(read<std::int8_t>(at));
    case Code::kInt16:
      return machine_convert<To>(read<std::int16_t>(at));
    case Code::kInt32:
      return machine_convert<To>(read<std::int32_t>(at));
    case Code::kInt64:
      return machine_convert<To>(read<std::int64_t>(at));
    case Code::kFloat16:
      return machine_convert<To>(Float16::decode(read<Float16>(at)));
    case Code::kBFloat16:
      return machine_convert<To>(BFloat16::decode(read<BFloat16>(at)));
    case Code::kFloat64:
      return machine_convert<To>(read<double>(at));
    case Code::kFloat8E4M3FN:
      return machine_convert<To>(Float8E4M3FN::decode(read<Float8E4M3FN>(at)));
    case Code::kFloat8E5M2:
      return machine_convert<To>(Float8E5M2::decode(read<Float8E5M2>(at)));
    case Code::kFloat8E4M3FNUZ:
      return machine_convert<To>(Float8E4M3FNUZ::decode(read<Float8E4M3FNUZ>(at)));
    case Code::kFloat8E5M2FNUZ:
      return machine_convert<To>(Float8E5M2FNUZ::decode(read<Float8E5M2FNUZ>(at)));
    case Code::kFloat8E8M0FNU:
      return machine_convert<To>(Float8E8M0FNU::decode(read<Float8E8M0FNU>(at)));
    default:
      return machine_convert<To>(read<float>(at));
  }
}

/// Writes what was computed in float as one of the types that are computed in it.
PENSTOCK_DEVICE inline void store(std::byte* at, Code type, float value) {
  switch (type) {
    case Code::kFloat16:
      return write(at, Float16::encode(value));
    case Code::kBFloat16:
      return write(at, BFloat16::encode(value));
    case Code::kFloat8E4M3FN:
      return write(at, Float8E4M3FN::encode(value));
    case Code::kFloat8E5M2:
      return write(at, Float8E5M2::encode(value));
    case Code::kFloat8E4M3FNUZ:
      return write(at, Float8E4M3FNUZ::encode(value));
    case Code::kFloat8E5M2FNUZ:
      return write(at, Float8E5M2FNUZ::encode(value));
    case Code::kFloat8E8M0FNU:
      return write(at, Float8E8M0FNU::encode(value));
    default:
      return write(at, value);
  }
}
PENSTOCK_DEVICE inline void store(std::byte* at, Code, double value) { write(at, value); }
/// Integers keep their low bits; bool is whether there are any.
PENSTOCK_DEVICE inline void store(std::byte* at, Code type, std::int64_t value) {
  switch (type) {
    case Code::kBool:
      return write(at, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
    case Code::kUInt8:
    case Code::kInt8:
      return write(at, static_cast<std::uint8_t>(value));
    case Code::kUInt16:
    case Code::kInt16:
      return write(at, static_cast<std::uint16_t>(value));
    case Code::kUInt32:
    case Code::kInt32:
      return write(at, static_cast<std::uint32_t>(value));
    default:
      return write(at, value);
  }
}
PENSTOCK_DEVICE inline void store(std::byte* at, Code, std::uint64_t value) { write(at, value); }

/// Writes a number of any machine type as any real type, converted as ops::convert does it.
template <class From>
PENSTOCK_DEVICE inline void store_converted(std::byte* at, Code type, From value) {
  switch (type) {
    case Code::kBool:
      return write(at, machine_convert<Bool>(value));
    case Code::kUInt8:
      return write(at, machine_convert<std::uint8_t>(value));
    case Code::kUInt16:
      return write(at, machine_convert<std::uint16_t>(value));
    case Code::kUInt32:
      return write(at, machine_convert<std::uint32_t>(value));
    case Code::kUInt64:
      return write(at, machine_convert<std::uint64_t>(value));
    case Code::kInt8:
      return write(at, machine_convert<std::int8_t>(value));
    case Code::kInt16:
      return write(at, machine_convert<std::int16_t>(value));
    case Code::kInt32:
      return write(at, machine_convert<std::int32_t>(value));
    case Code::kInt64:
      return write(at, machine_convert<std::int64_t>(value));
    case Code::kFloat64:
      return write(at, machine_convert<double>(value));
    default:
      return store(at, type, machine_convert<float>(value));
  }
}

/// Converts one real element of any type to any other.
PENSTOCK_DEVICE inline void convert_element(const std::byte* from, Code from_type, std::byte* to, Code to_type) {
  switch (from_type) {
    case Code::kBool:
    case Code::kUInt8:
    case Code::kUInt16:
    case Code::kUInt32:
    case Code::kInt8:
    case Code::kInt16:
    case Code::kInt32:
    case Code::kInt64:
      return store_converted(to, to_type, load<std::int64_t>(from, from_type));
    case Code::kUInt64:
      return store_converted(to, to_type, read<std::uint64_t>(from));
    case Code::kFloat64:
      return store_converted(to, to_type, read<double>(from));
    default:
      return store_converted(to, to_type, load<float>(from, from_type));
  }
}

/// Offsets of element i in two memories.
struct Offsets {
  std::int64_t first;
  std::int64_t second;
};

/// Adds what dimension kDim and those outside it contribute. Recursion, not a loop: constant indices keep the
/// parameters out of local memory.
template <unsigned kDim, class Index>
PENSTOCK_DEVICE inline void add_offsets(const KernelShape& shape, const KernelSteps& a, const KernelSteps& b, Index i,
                                        Offsets& out) {
  if (kDim < shape.rank) {
    const auto size = static_cast<Index>(shape.sizes[kDim]);
    const Index next = kDim == 0 ? Index{0} : i / size;
    const auto at = static_cast<std::int64_t>(kDim == 0 ? i : i - next * size);
    out.first += at * a.steps[kDim];
    out.second += at * b.steps[kDim];
    i = next;
  }
  if constexpr (kDim > 0) add_offsets<kDim - 1>(shape, a, b, i, out);
}

template <class Index>
PENSTOCK_DEVICE inline Offsets offsets_of(const KernelShape& shape, const KernelSteps& a, const KernelSteps& b,
                                          Index i) {
  Offsets out{0, 0};
  add_offsets<kKernelDims - 1>(shape, a, b, i, out);
  return out;
}

PENSTOCK_DEVICE inline Offsets offsets(const KernelShape& shape, const KernelSteps& a, const KernelSteps& b,
                                       std::uint64_t i) {
  // Division of 32 bits is many times faster.
  if (shape.count <= 0xFFFFFFFFU) return offsets_of(shape, a, b, static_cast<std::uint32_t>(i));
  return offsets_of(shape, a, b, i);
}

/// Bytes of an element.
PENSTOCK_DEVICE constexpr unsigned width_of(Code type) noexcept {
  switch (type) {
    case Code::kComplex128:
      return 16;
    case Code::kUInt64:
    case Code::kInt64:
    case Code::kFloat64:
    case Code::kComplex64:
      return 8;
    case Code::kUInt32:
    case Code::kInt32:
    case Code::kFloat32:
    case Code::kComplex32:
      return 4;
    case Code::kUInt16:
    case Code::kInt16:
    case Code::kFloat16:
    case Code::kBFloat16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace penstock::ops
