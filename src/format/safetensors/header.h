#pragma once

// The JSON header of a safetensors file. docs/formats/safetensors.md describes the bytes.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/safetensors/dtype.h"
#include "penstock/shape.h"

namespace penstock::format {

/// The reference refuses longer headers (MAX_HEADER_SIZE).
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// One tensor as the header declares it, checked.
struct SafetensorsTensor {
  std::string name;
  const SafetensorsDType* dtype = nullptr;  ///< null: not a type of the table
  std::string foreign_dtype;                ///< the type's name then
  Shape shape;                              ///< of values: for types below a byte not what our tensors have
  std::uint64_t begin = 0;                  ///< first byte, counted from the end of the header
  std::uint64_t end = 0;
  std::uint64_t where = 0;  ///< byte of the file where the header names it
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;  ///< in order of their bytes, without gap or overlap
  std::map<std::string, std::string> metadata;
  bool has_metadata = false;  ///< the header has the object, an empty one too
};

/// Parses the header `json`, which lies at byte 8 of the file at `path` and is followed by `data_bytes` bytes. Checks
/// everything that can be without reading these: names occur once, sizes agree with shapes and types, and the tensors
/// cover the data exactly. A type that is not in the table is taken with whatever size it has. Unknown fields of a
/// tensor are stepped over, as in the reference. Time is linear but for sorting. kCorrupt, kTruncated, kLimit.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& path);

/// The row for a tensor that is to be written. kUnsupported where the format has none for it, kInvalidArgument for a
/// name that the format keeps for itself or that is no UTF-8.
const SafetensorsDType& require_safetensors(const std::string& name, const DType& dtype, std::size_t rank);
/// The shape as the header has it: in values, of which an element may hold several.
Shape shape_of_values(const Shape& shape, const SafetensorsDType& dtype);
/// The header of tensors in order of their bytes, as the reference writes it: JSON, padded to 8 bytes. kLimit when it
/// is longer than the reference reads.
std::string make_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                    const std::optional<std::map<std::string, std::string>>& metadata);

}  // namespace penstock::format
