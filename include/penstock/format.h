#pragma once

/// Devices and types in std::format: `std::format("{} on {}", dtype, device)`. Apart from their own headers, because
/// <format> takes long to compile, and not every compiler has it.

#include <version>

#include "penstock/device.h"
#include "penstock/dtype.h"

#ifdef __cpp_lib_format

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

#endif
