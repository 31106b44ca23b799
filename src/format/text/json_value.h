#pragma once

// JSON between files and values: labels and metadata of datasets. JSON of the formats themselves is read by
// core/json_reader.h, which keeps no tree.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/value.h"

namespace penstock::format {

/// What JSON text says, as Python's json module reads it: numbers of any size, NaN and Infinity too. kCorrupt for what
/// is no JSON and for an object that names something twice, kLimit for nesting beyond 64 levels. `path` and `offset`
/// are the text's place, for errors.
Value json_value(std::string_view text, const std::string& path, std::uint64_t offset);

/// The value as JSON text, which json_value reads back: numbers as Python writes them. kUnsupported for tensors, bytes,
/// texts that are no UTF-8, and keys that are no texts; kLimit for nesting beyond 64 levels, and for more than `most`
/// bytes.
std::string json_text(const Value& value, std::size_t most = std::size_t{1} << 30);

}  // namespace penstock::format
