#pragma once

// From the integer type of a tensor to that of C++.

#include <cstdint>

#include "penstock/dtype.h"

namespace penstock::ops {

/// Calls function(T{}) with the C++ type of a DType that is_integer().
template <class Function>
auto with_integer_type(DType::Code type, const Function& function) {
  switch (type) {
    case DType::Code::kUInt8:
      return function(std::uint8_t{});
    case DType::Code::kUInt16:
      return function(std::uint16_t{});
    case DType::Code::kUInt32:
      return function(std::uint32_t{});
    case DType::Code::kUInt64:
      return function(std::uint64_t{});
    case DType::Code::kInt8:
      return function(std::int8_t{});
    case DType::Code::kInt16:
      return function(std::int16_t{});
    case DType::Code::kInt32:
      return function(std::int32_t{});
    default:
      return function(std::int64_t{});
  }
}

}  // namespace penstock::ops
