#pragma once

/// The elements of a tensor whatever their type: `visit(tensor, [](auto elements) { ... })`.

#include <complex>
#include <cstdint>
#include <utility>

#include "penstock/tensor.h"

namespace penstock {

namespace detail {
[[noreturn]] void throw_no_cpp_type(const DType& dtype);

template <template <class> class Element, class Function>
decltype(auto) visit_elements(const Tensor& tensor, Function&& function) {
  const auto call = [&]<class T>() -> decltype(auto) {
    return std::forward<Function>(function)(tensor.template values<typename Element<T>::type>());
  };
  using enum DType::Code;
  switch (tensor.dtype().code()) {
    case kBool:
      return call.template operator()<bool>();
    case kUInt8:
      return call.template operator()<std::uint8_t>();
    case kUInt16:
      return call.template operator()<std::uint16_t>();
    case kUInt32:
      return call.template operator()<std::uint32_t>();
    case kUInt64:
      return call.template operator()<std::uint64_t>();
    case kInt8:
      return call.template operator()<std::int8_t>();
    case kInt16:
      return call.template operator()<std::int16_t>();
    case kInt32:
      return call.template operator()<std::int32_t>();
    case kInt64:
      return call.template operator()<std::int64_t>();
    case kFloat16:
      return call.template operator()<float16>();
    case kBFloat16:
      return call.template operator()<bfloat16>();
    case kFloat32:
      return call.template operator()<float>();
    case kFloat64:
      return call.template operator()<double>();
    case kComplex64:
      return call.template operator()<std::complex<float>>();
    case kComplex128:
      return call.template operator()<std::complex<double>>();
    case kComplex32:
    case kFloat8E4M3FN:
    case kFloat8E5M2:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2FNUZ:
    case kFloat8E8M0FNU:
    case kQInt8:
    case kQUInt8:
    case kQInt32:
    case kQUInt4x2:
    case kQUInt2x4:
    case kBits8:
    case kBits16:
    case kFloat4E2M1FNx2:
    case kFloat6E2M3:
    case kFloat6E3M2:
    case kBytes:
    case kText:
    case kVoid:
    case kDateTime64:
    case kTimeDelta64:
    case kStructured:
    case kOpaque:
      break;
  }
  throw_no_cpp_type(tensor.dtype());
}
template <class T>
struct ReadElement {
  using type = const T;
};
template <class T>
struct WrittenElement {
  using type = T;
};
}  // namespace detail

/// Calls `function` with the elements, as a std::span<const T> of the type that they have, and returns what it returns,
/// which is of one type for all. By the rules of Tensor::values: contiguous, in host memory. kDTypeMismatch for a type
/// that C++ has no name for (float8, text, structures).
template <class Function>
decltype(auto) visit(const Tensor& tensor, Function&& function) {
  return detail::visit_elements<detail::ReadElement>(tensor, std::forward<Function>(function));
}
/// The same with a std::span<T>, whose elements may be written. kInvalidArgument for read-only memory.
template <class Function>
decltype(auto) visit_writable(const Tensor& tensor, Function&& function) {
  return detail::visit_elements<detail::WrittenElement>(tensor, std::forward<Function>(function));
}

}  // namespace penstock
