// The types of safetensors, in the order of the reference implementation.

#include "format/safetensors/dtype.h"

#include <algorithm>
#include <array>

namespace penstock::format {
namespace {

using enum DType::Code;

constexpr auto kTypes = std::to_array<SafetensorsDType>({
    {"BOOL", kBool, 8, 1},
    {"F4", kFloat4E2M1FNx2, 4, 2},
    {"F6_E2M3", kFloat6E2M3, 6, 4},
    {"F6_E3M2", kFloat6E3M2, 6, 4},
    {"U8", kUInt8, 8, 1},
    {"I8", kInt8, 8, 1},
    {"F8_E5M2", kFloat8E5M2, 8, 1},
    {"F8_E4M3", kFloat8E4M3FN, 8, 1},
    {"F8_E8M0", kFloat8E8M0FNU, 8, 1},
    {"F8_E4M3FNUZ", kFloat8E4M3FNUZ, 8, 1},
    {"F8_E5M2FNUZ", kFloat8E5M2FNUZ, 8, 1},
    {"I16", kInt16, 16, 1},
    {"U16", kUInt16, 16, 1},
    {"F16", kFloat16, 16, 1},
    {"BF16", kBFloat16, 16, 1},
    {"I32", kInt32, 32, 1},
    {"U32", kUInt32, 32, 1},
    {"F32", kFloat32, 32, 1},
    {"C64", kComplex64, 64, 1},
    {"F64", kFloat64, 64, 1},
    {"I64", kInt64, 64, 1},
    {"U64", kUInt64, 64, 1},
});

}  // namespace

std::span<const SafetensorsDType> safetensors_dtypes() noexcept { return kTypes; }

const SafetensorsDType* find_safetensors_dtype(std::string_view name) noexcept {
  const auto* row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.name == name; });
  return row == kTypes.end() ? nullptr : row;
}

const SafetensorsDType* find_safetensors_dtype(const DType& dtype) noexcept {
  const auto code = dtype.code();
  const auto* row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.code == code; });
  return row == kTypes.end() ? nullptr : row;
}

}  // namespace penstock::format
