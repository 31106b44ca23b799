#pragma once

// A nested value as tensors by name, for formats that hold nothing else (safetensors, npz).

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/entry.h"
#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock::format {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// The tensors of `value` for a format that holds nothing but tensors by name: those of a dict, nested dicts joined
/// with '.', in order; or one bare tensor as `bare_name`. `format` is for errors: kUnsupported for anything else in
/// `value` (it is named by its place) and for two tensors that would get one name; kLimit for dicts nested beyond 64
/// levels, for dicts held so often that the ways to them multiply (core::SharedWalk), and for 100 MB of joined keys.
std::vector<NamedTensor> flat_tensors(const Value& value, std::string_view format, std::string_view bare_name);

/// The same of tensors that may be not loaded (Value::entry).
std::vector<std::pair<std::string, Value>> flat_values(const Value& value, std::string_view format,
                                                       std::string_view bare_name);

/// The structure of such a format's index: a dict of the entries in their order.
Value dict_of_entries(const std::vector<TensorEntry>& entries);

}  // namespace penstock::format
