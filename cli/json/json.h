#pragma once

// What commands print under --json: entries, errors, values of a tensor. json_writer.h writes it as it comes, because
// there may be a million tensors.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/json/json_type.h"
#include "cli/json/json_writer.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/tensor.h"

namespace penstock::cli {

void write_json(JsonWriter& out, const Json& json);
/// The members of `object` into the one that is open.
void write_members(JsonWriter& out, const Json& object);
/// The member "tensors" of the object that is open: each tensor of an archive with its name, dtype, shape, strides,
/// nbytes, file, offset, storage, and flags where set.
void write_entries(JsonWriter& out, const Archive& archive);
/// Only these of its entries, in this order.
void write_entries(JsonWriter& out, const Archive& archive, std::span<const std::size_t> entries);

/// What stands in the place of a result that there is none of: {"path", "error"}, without a path where none is known.
/// Of each file that cannot be read in a list of files; of a command that fails it is all that is printed.
Json error_json(const Error& error, const std::string& path = {});

/// Prints with two spaces a level.
void print_json(const Json& json);
/// Prints an object and, as its last member, every element of a host tensor, nested by dimension; numbers that JSON
/// lacks (nan, inf) become strings, and no elements at all an empty list, whatever the shape. Written as it goes: it
/// takes no more memory than the tensor does.
void print_json(const Json& object, std::string_view name, const Tensor& values);

}  // namespace penstock::cli
