#pragma once

// The error of a checkpoint that contradicts itself, with the item's name.

#include <string>
#include <string_view>

#include "penstock/error.h"

namespace penstock::format::dcp {

/// What a checkpoint says of one of its items cannot be.
[[noreturn]] inline void fail(const std::string& message, std::string_view item = {},
                              ErrorCode code = ErrorCode::kCorrupt) {
  throw Error(code, message, {.tensor = std::string(item)});
}

}  // namespace penstock::format::dcp
