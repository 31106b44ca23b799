#pragma once

// The advice of writers that lack a type: which format has it.

#include <string>

#include "penstock/dtype.h"

namespace penstock::format {

/// What to do with a tensor of this type where a format has no type for it, as the end of a message: "convert the
/// tensor, or save as .pt". It names a format that holds the type, where one does.
std::string elsewhere(const DType& dtype);

/// Whether a tensor of this type means nothing without a scale, which only torch's pickles keep.
bool is_quantized(DType::Code code) noexcept;

}  // namespace penstock::format
