#include "core/cursor.h"

#include "core/counted.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::core {

void Cursor::seek(std::size_t position) {
  if (position > bytes_.size()) {
    throw Error(ErrorCode::kTruncated,
                core::format("position {} lies beyond the end of the data, which has {}", position,
                             core::counted(bytes_.size(), "byte")),
                {.offset = base_ + bytes_.size()});
  }
  position_ = position;
}

std::string_view Cursor::take_line() {
  const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + position_, remaining());
  const std::size_t length = rest.find('\n');
  if (length == std::string_view::npos) {
    throw Error(ErrorCode::kTruncated, "the data ends within a line, where a line break was expected",
                {.offset = offset()});
  }
  position_ += length + 1;
  return rest.substr(0, length);
}

void Cursor::throw_truncated(std::size_t wanted) const {
  throw Error(ErrorCode::kTruncated,
              core::format("the data ends early: {} wanted, {} left", core::counted(wanted, "byte"), remaining()),
              {.offset = offset()});
}

}  // namespace penstock::core
