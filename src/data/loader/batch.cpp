#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"
#include "penstock/loader.h"

namespace penstock {

const Tensor& Batch::tensor() const& {
  const bool is_dict = value.is(Value::Kind::kDict);
  if (!is_dict && !value.is(Value::Kind::kTuple) && !value.is(Value::Kind::kList)) return value.as_tensor();
  const bool has_name = is_dict && value.size() > 0 && value.item(0).first.is(Value::Kind::kString);
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("the batch is a {} of {}, where a tensor was expected; take a part of it, as batch[{}]",
                           is_dict                         ? "dict"
                           : value.is(Value::Kind::kTuple) ? "tuple"
                                                           : "list",
                           value.size(), has_name ? core::quoted(value.item(0).first.as_string()) : "0"));
}

}  // namespace penstock
