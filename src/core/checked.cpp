#include "core/checked.h"

#include "core/format.h"

namespace penstock::core {

void throw_overflow(std::string_view what) {
  throw Error(ErrorCode::kCorrupt, core::format("{} does not fit in 64 bits; the file is damaged or hostile", what));
}

}  // namespace penstock::core
