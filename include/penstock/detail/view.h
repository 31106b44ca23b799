#pragma once

/// What views of other libraries' types ask of a tensor.

#include <cstddef>

#include "penstock/tensor.h"

namespace penstock::detail {

struct ViewNeeds {
  DType dtype;
  std::size_t alignment;
  bool writable;
  const char* what;  ///< the view, for errors
  std::size_t rank;
};
/// The address of the first element, in host memory, where all of that is there. The errors of Tensor::values, but any
/// strides will do; kShapeMismatch for another number of dimensions.
std::byte* elements_of_view(const Tensor& tensor, const ViewNeeds& needs);

}  // namespace penstock::detail
