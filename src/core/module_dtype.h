#pragma once

// What an option `dtype=` means, wherever it stands: in a load, for the samples of a dataset, in the command. It means
// what torch's Module.to(dtype) does, so that token ids and masks are never rounded by a type that is meant for
// weights.

#include <string_view>

#include "penstock/dtype.h"

namespace penstock::core {

/// Whether tensors of this type are converted: floating-point and complex numbers are.
bool follows_dtype(const DType& stored) noexcept;
/// kInvalidArgument for a type that is none of these: `what` is "of a load", and `advice` what to do instead.
void require_module_dtype(const DType& dtype, std::string_view what, std::string_view advice);

}  // namespace penstock::core
