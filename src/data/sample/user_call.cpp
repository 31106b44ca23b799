#include "data/sample/user_call.h"

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::data {

void require_some(const Value& value, std::string_view who) {
  if (!value.is(Value::Kind::kNone)) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("{} gave None; return what it makes, and leave samples out with filter", who));
}

}  // namespace penstock::data
