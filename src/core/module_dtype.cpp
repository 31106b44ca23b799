#include "core/module_dtype.h"

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::core {

bool follows_dtype(const DType& stored) noexcept {
  return stored.is_numeric() && (stored.is_floating() || stored.is_complex());
}

void require_module_dtype(const DType& dtype, std::string_view what, std::string_view advice) {
  if (follows_dtype(dtype)) return;
  throw Error(ErrorCode::kInvalidArgument,
              format("found {} as the type {}, which converts floating-point and complex tensors and no others; give a "
                     "type of these, {}",
                     dtype.name(), what, advice));
}

}  // namespace penstock::core
