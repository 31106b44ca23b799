#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::cli {

using Json = nlohmann::ordered_json;

/// One tensor as the commands show it: name, dtype, shape, strides, nbytes, file, offset, and flags where set.
Json to_json(const Archive& archive, const TensorEntry& entry);
/// The nested content, tensors by name. Containers deeper than 64 and whatever comes after the first hundred thousand
/// values become "...": what is there once in a file may be in many places of its content, or in itself.
Json to_json(const Archive& archive, const Value& value);

/// Prints with two spaces a level; invalid UTF-8 from files is replaced, never passed on.
void print_json(const Json& json);
/// Prints an object and, as its last member, every element of a host tensor, nested by dimension; numbers that JSON
/// lacks (nan, inf) become strings, and no elements at all an empty list, whatever the shape. Written as it goes: it
/// takes no more memory than the tensor does.
void print_json(const Json& object, std::string_view name, const Tensor& values);

}  // namespace penstock::cli
