#pragma once

// The two most frequent errors in one word each.

#include <cstdint>
#include <string>
#include <utility>

#include "penstock/error.h"

namespace penstock::core {

/// What the caller asks for cannot be.
[[noreturn]] inline void refuse(std::string message) { throw Error(ErrorCode::kInvalidArgument, std::move(message)); }

/// What a file says cannot be.
[[noreturn]] inline void corrupt(std::string message) { throw Error(ErrorCode::kCorrupt, std::move(message)); }
[[noreturn]] inline void corrupt(std::string message, std::uint64_t offset) {
  throw Error(ErrorCode::kCorrupt, std::move(message), {.offset = offset});
}

}  // namespace penstock::core
