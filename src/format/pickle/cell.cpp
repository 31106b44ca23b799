#include "format/pickle/cell.h"

#include <cstring>

#include "penstock/error.h"

namespace penstock::format::pickle {

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
              "the pickle has more objects than Penstock reads from one file; save the data as "
              "tensors instead of Python objects");
}

void CellArena::throw_too_much_text() {
  throw Error(ErrorCode::kLimit,
              "the pickle makes far more text and bytes than it has itself, as only hostile files do");
}

}  // namespace penstock::format::pickle
