#pragma once

#include <string_view>

#include "data/files/path_table.h"

namespace penstock::data {

/// Whether `name` (one component of a path) matches a pattern of `*`, `?`, `[a-z]`, `[!a-z]` and plain characters. As
/// in shells, a leading dot must be written out. A '[' without its ']' stands for itself. Bytewise.
bool matches(std::string_view pattern, std::string_view name) noexcept;

/// The regular files that `pattern` stands for, sorted: a file, a folder (the files in it with a tensor format's
/// extension), or a glob, in which the component `**` means any number of folders (not hidden ones, not links).
/// kNotFound when there is none; kPermission, kIo for a folder that cannot be listed.
PathTable expand(std::string_view pattern);

}  // namespace penstock::data
