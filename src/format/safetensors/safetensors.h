#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "format/format.h"

namespace penstock::format {

/// Writes `value` as the reference does, byte for byte: a dict of tensors (nested ones are joined with '.') or one
/// tensor, called "tensor". kUnsupported names the first thing the format cannot hold, or two tensors that overlap in
/// memory; kInvalidArgument for a name that is not UTF-8 or is taken.
void write_safetensors(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);

/// Writes the bytes of entry `i` of an index, contiguous in C order and in this machine's byte order.
using WritePayload = std::function<void(std::size_t i, io::ByteSink& sink)>;

/// The same of tensors that are not loaded, those of `structure`. Whether tensors share memory is not looked at.
void write_safetensors_entries(const Value& structure, std::span<const TensorEntry> entries,
                               const WritePayload& payload, io::ByteSink& sink, const SaveOptions& options,
                               std::string_view path);

}  // namespace penstock::format
