#include "penstock/visit.h"

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::detail {

void throw_no_cpp_type(const DType& dtype) {
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("C++ has no type for elements of {}; convert the tensor with to()", dtype.name()));
}

}  // namespace penstock::detail
