#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace penstock::io {

struct GatherRow {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
};
/// Copies equal rows from memory that stays, wherever each lies: waits for several of them at once.
void gather(std::span<const GatherRow> rows, std::size_t row_bytes) noexcept;
/// The same from memory that may be a mapping of a file somebody cuts, as guarded_copy.
void guarded_gather(std::span<const GatherRow> rows, std::size_t row_bytes, std::string_view path);

}  // namespace penstock::io
