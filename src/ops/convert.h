#pragma once

#include <cstddef>

#include "penstock/dtype.h"

namespace penstock::ops {

/// Converts `count` elements that lie one behind the other. Neither side need be aligned; they must not overlap.
/// Both types are numeric (DType::is_numeric). The same values whatever the processor; the rules of Tensor::to(DType).
void convert(DType::Code from_type, const std::byte* from, DType::Code to_type, std::byte* to, std::size_t count);

}  // namespace penstock::ops
