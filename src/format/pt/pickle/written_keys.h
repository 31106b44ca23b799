#pragma once

// Keys of dicts and items of sets, as readers of what is written will see them.

#include <optional>
#include <string>

#include "penstock/value.h"

namespace penstock::format::pickle {

/// Why no reader could use `key`, which Python hashes: it, or a part of a tuple, changes, or it is too much to hash.
/// Nothing for a good one.
std::optional<std::string> why_no_key(const Value& key);

/// A key that the dict has twice, by the rule of readers: which of two is meant is not told. Nothing where there is
/// none.
std::optional<Value> twin_key(const Value& dict);

}  // namespace penstock::format::pickle
