#pragma once

// How sources of the program's own are read, whatever they throw.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/rethrow.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::io {

/// source.read, of a class that may be the program's own: what that throws becomes an Error.
inline void read_own(const ByteSource& source, std::uint64_t offset, std::span<std::byte> into) {
  try {
    source.read(offset, into);
  } catch (const Error&) {
    throw;
  } catch (...) {
    try {
      core::rethrow_as_error("the source's read");
    } catch (const Error& error) {
      throw error.within({.path = source.name(), .offset = offset});
    }
  }
}

}  // namespace penstock::io
