// Lists of cells in the arena. They grow by doubling; outgrown blocks stay in the arena until all of it goes.

#include "format/pt/pickle/cell.h"

#include <cstring>
#include <new>

#include "penstock/error.h"

namespace penstock::format::pickle {

void Items::reserve(std::size_t count) {
  if (count > size()) grow(count);
}

void Items::grow(std::size_t count) {
  const std::size_t before = has_block() ? block()->capacity : 0;
  if (count <= before) return;
  auto* const memory = has_block() ? block()->memory : reinterpret_cast<std::pmr::memory_resource*>(word_ & ~kNoBlock);
  const std::size_t capacity = std::max(count, 2 * before);
  void* const place = memory->allocate(sizeof(Block) + capacity * sizeof(Cell*), alignof(Block));
  auto* const grown = new (place) Block{memory, size(), capacity};
  std::copy(begin(), end(), grown->cells());
  word_ = reinterpret_cast<std::uintptr_t>(grown);
}

bool is_hashable(const Cell& cell) noexcept {
  const bool can_change = (cell.is(Value::Kind::kSet) && cell.type_name != "frozenset") ||
                          (cell.is(Value::Kind::kBytes) && cell.type_name == "bytearray");
  return !cell.is(Value::Kind::kList) && !cell.is(Value::Kind::kDict) && !can_change;
}

char* CellArena::allocate_text(std::size_t bytes) {
  charge_text(bytes);
  return static_cast<char*>(memory_.allocate(bytes == 0 ? 1 : bytes, 1));
}

std::string_view CellArena::keep(std::string_view text) {
  char* copy = allocate_text(text.size());
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

void CellArena::throw_too_many() {
  throw Error(ErrorCode::kLimit,
              "the pickle makes more objects than one of its size can hold, as only hostile files do");
}

void CellArena::throw_too_much_text() {
  throw Error(ErrorCode::kLimit,
              "the pickle makes far more text and bytes than it has itself, as only hostile files do");
}

}  // namespace penstock::format::pickle
