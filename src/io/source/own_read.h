#pragma once

// How sources of the program's own are asked for their bytes, whatever they throw.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/format.h"
#include "core/rethrow.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::io {

/// What `call` gives, a member of a source that may be of the program's own class: what that throws becomes an Error.
template <class Call>
decltype(auto) ask_own(const ByteSource& source, std::string_view who, std::optional<std::uint64_t> offset,
                       Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (...) {
    try {
      core::rethrow_as_error(who);
    } catch (const Error& error) {
      throw error.within({.path = source.name(), .offset = offset});
    }
  }
}

inline void read_own(const ByteSource& source, std::uint64_t offset, std::span<std::byte> into) {
  ask_own(source, "the source's read", offset, [&] { source.read(offset, into); });
}

/// source.memory(). kInvalidArgument where that is not as long as the source, because it would be read beyond its end.
inline Buffer memory_of(const ByteSource& source) {
  Buffer memory = ask_own(source, "the source's memory", {}, [&] { return source.memory(); });
  if (memory && memory.size() != source.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the source's memory has {} bytes, and its size is {}; let memory give all of the source, "
                             "or an empty buffer",
                             memory.size(), source.size()),
                {.path = source.name()});
  }
  return memory;
}

}  // namespace penstock::io
