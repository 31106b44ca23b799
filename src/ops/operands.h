#pragma once

#include <string_view>

#include "penstock/tensor.h"

namespace penstock::ops {

/// kDeviceMismatch unless the tensor is in host memory.
void require_host(const Tensor& tensor, std::string_view operation);
/// And kInvalidArgument when its memory may only be read.
void require_writable(const Tensor& tensor, std::string_view operation);
/// kShapeMismatch, naming both.
void require_same_shape(const Tensor& from, const Tensor& to, std::string_view operation);

}  // namespace penstock::ops
