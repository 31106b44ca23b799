// Refuses text that is not there.
#include "penstock/text_view.h"

#include "penstock/error.h"

namespace penstock::detail {

void throw_null_text() {
  throw Error(ErrorCode::kInvalidArgument,
              "found a null pointer, expected a text such as a path, a name or a key; std::getenv gives one for a "
              "variable that is not set");
}

}  // namespace penstock::detail
