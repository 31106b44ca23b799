#pragma once

#include <string_view>

namespace penstock::data {

/// Whether a component of a pattern has characters that stand for others.
bool is_magic(std::string_view component) noexcept;

/// Whether `name` (one component of a path) matches a pattern of `*`, `?`, `[a-z]`, `[!a-z]` and plain characters. As
/// in shells, a leading dot must be written out. A '[' without its ']' stands for itself. Bytewise.
bool matches(std::string_view pattern, std::string_view name) noexcept;

}  // namespace penstock::data
