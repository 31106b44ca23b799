#pragma once

#include <nlohmann/json.hpp>

#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::cli {

using Json = nlohmann::ordered_json;

/// One tensor as the commands show it: name, dtype, shape, strides, nbytes, file, offset, and flags where set.
Json to_json(const Archive& archive, const TensorEntry& entry);
/// The nested content, tensors by name; containers deeper than `depth` and cycles become "...".
Json to_json(const Archive& archive, const Value& value, int depth = 64);
/// Every element of a host tensor, nested by dimension; numbers that JSON lacks (nan, inf) become strings.
Json to_json(const Tensor& tensor);

/// Prints with two spaces a level; invalid UTF-8 from files is replaced, never passed on.
void print_json(const Json& json);

}  // namespace penstock::cli
