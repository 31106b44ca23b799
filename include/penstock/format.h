#pragma once

/// Devices, types, and options that are an Integer or a Flag in std::format: `std::format("{} on {}", dtype, device)`.
/// Apart from their own headers, because <format> takes long to compile, and not every compiler has it.

#include <version>

#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/integer.h"

#ifdef __cpp_lib_format

#include <cstdint>
#include <format>
#include <string>

/// With the options of text: `{:>8}`.
template <>
struct std::formatter<penstock::Device> : std::formatter<std::string> {
  auto format(const penstock::Device& device, auto& context) const {
    return std::formatter<std::string>::format(device.to_string(), context);
  }
};
template <>
struct std::formatter<penstock::DType> : std::formatter<std::string> {
  auto format(const penstock::DType& dtype, auto& context) const {
    return std::formatter<std::string>::format(dtype.name(), context);
  }
};
/// With the options of the number, or of a bool.
template <>
struct std::formatter<penstock::Integer> : std::formatter<std::int64_t> {
  auto format(penstock::Integer value, auto& context) const {
    return std::formatter<std::int64_t>::format(value, context);
  }
};
template <>
struct std::formatter<penstock::Flag> : std::formatter<bool> {
  auto format(penstock::Flag value, auto& context) const { return std::formatter<bool>::format(value, context); }
};

#endif
