#pragma once

// Writers of the row of safetensors, stream.cpp's and write.cpp's; sharded models are shard_list.h's.

#include <memory>
#include <string_view>

#include "format/format.h"
#include "format/unloaded.h"

namespace penstock::format {

/// Writes `value` as the reference does, byte for byte: a dict of tensors (nested ones are joined with '.') or one
/// tensor, called "tensor". kUnsupported names the first thing the format cannot hold, or two tensors that overlap in
/// memory; kInvalidArgument for a name that is not UTF-8 or is taken.
void write_safetensors(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path);

/// The same of tensors that are not loaded. Whether they share memory in the file that they come from is not looked at.
void write_unloaded_safetensors(const Unloaded& content, io::ByteSink& sink, const SaveOptions& options,
                                std::string_view path);

/// What penstock::Writer writes tensor by tensor.
std::unique_ptr<StreamWriter> stream_safetensors(std::string_view path, const WriterOptions& options);

}  // namespace penstock::format
