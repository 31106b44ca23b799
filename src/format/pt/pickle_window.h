#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "format/file_bytes.h"
#include "penstock/error.h"

namespace penstock::format {

/// Reads a pickle, which does not say how long it is. Calls `read(bytes)` with the bytes of the file from `offset`:
/// first with `first` of them, then with more as long as `read` throws kTruncated and there are more before `end`.
/// Returns what `read` returns. kLimit for a pickle of more than `largest` bytes.
template <class Read>
auto with_window(const FileBytes& file, std::uint64_t offset, std::uint64_t end, std::uint64_t first, Read&& read,
                 std::uint64_t largest = std::uint64_t{1} << 31) {
  const std::uint64_t all = end - offset;
  std::vector<std::byte> store;
  for (std::uint64_t length = std::min(first, all);; length = std::min({length * 8, all, largest})) {
    try {
      return read(file.at(offset, length, store));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTruncated || length == all) throw;
    }
    if (length < largest) continue;
    throw Error(ErrorCode::kLimit,
                core::format("the pickle has more than {}, which Penstock does not read", core::format_bytes(largest)),
                {.offset = offset});
  }
}

}  // namespace penstock::format
