#pragma once

// Products of matrices by cuBLAS, for CudaQueue; where there is none, or not for a type, ops/ has kernels.

#include "device/backend.h"
#include "device/cuda/context.h"

namespace penstock::device::cuda {

/// Whether there is a cuBLAS in this context and it has products of this type. Makes the context's handle.
bool multiplies(const ContextPtr& context, DType::Code type);
/// Queue::multiply by cuBLAS in `stream`.
bool multiply(const ContextPtr& context, CUstream stream, const MatrixProduct& product);
/// Backend::product_library.
ProductLibrary product_library(const ContextPtr& context);

}  // namespace penstock::device::cuda
