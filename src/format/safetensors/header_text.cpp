// The header that the reference implementation writes: the same JSON, the same padding.

#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/elsewhere.h"
#include "format/safetensors/header.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

std::string json_string(const std::string& text, std::string_view what) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the {} {} is not valid UTF-8, which safetensors asks for", what, core::quoted(text)));
  }
}

}  // namespace

const SafetensorsDType& require_safetensors(const std::string& name, const DType& dtype, std::size_t rank) {
  const SafetensorsDType* row = find_safetensors_dtype(dtype);
  if (row == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                core::format("safetensors has no type for {}: {}", dtype.name(), elsewhere(dtype)), {{}, {}, name});
  }
  if (row->packed > 1 && rank == 0) {
    throw Error(ErrorCode::kUnsupported,
                core::format("{} packs {} along the last dimension, and the tensor has none: reshape it to (1,)",
                             dtype.name(), core::counted(row->packed, "value")),
                {{}, {}, name});
  }
  if (name == "__metadata__") {
    throw Error(ErrorCode::kInvalidArgument, "safetensors keeps this name for itself: rename the tensor",
                {{}, {}, name});
  }
  json_string(name, "name");
  return *row;
}

Shape shape_of_values(const Shape& shape, const SafetensorsDType& dtype) {
  if (dtype.packed == 1) return shape;
  Shape values = shape;
  values[shape.rank() - 1] = core::checked_mul<std::int64_t>(values[shape.rank() - 1], dtype.packed, "shape");
  return values;
}

std::string make_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                    const std::optional<std::map<std::string, std::string>>& metadata) {
  std::string json = "{";
  if (metadata) {
    json += R"("__metadata__":{)";
    for (const auto& [key, text] : *metadata) {
      json += core::format("{}:{},", json_string(key, "metadata key"), json_string(text, "metadata text"));
    }
    if (json.back() == ',') json.pop_back();
    json += "},";
  }
  for (const SafetensorsTensor& tensor : tensors) {
    core::append(json, R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)", json_string(tensor.name, "name"),
                 tensor.dtype->name, fmt::join(tensor.shape.dims(), ","), tensor.begin, tensor.end);
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > kMaxSafetensorsHeader) {
    throw Error(ErrorCode::kLimit,
                core::format("the header takes {} for {}; safetensors allows {}", core::counted(json.size(), "byte"),
                             core::counted(tensors.size(), "tensor"), kMaxSafetensorsHeader));
  }
  return json;
}

}  // namespace penstock::format
