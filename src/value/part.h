#pragma once

// Parts of nested content by the keys that lead to them, as Archive::part and the command take them.

#include <cstdint>
#include <optional>
#include <string_view>

#include "penstock/value.h"

namespace penstock::value {

/// What `path` leads to: a key of a dict, or several keys with dots between them; integer keys and positions in lists
/// are written in digits. A key that has dots itself is found first, and text before an integer.
std::optional<Value> part_at(const Value& value, std::string_view path);
/// What an integer key of a dict, or a position in a list or tuple, leads to.
std::optional<Value> part_at(const Value& value, std::int64_t key);

}  // namespace penstock::value
