#pragma once

// Tensors as kernels take them: one struct of shapes and strides by value.

#include <array>
#include <span>

#include "ops/kernels/parameters.h"
#include "ops/launcher.h"
#include "penstock/tensor.h"

namespace penstock::ops {

/// The elements of up to three tensors that are broadcast to one shape, in as few dimensions as their strides allow.
struct KernelLayout {
  KernelShape shape;
  std::array<KernelSteps, 3> steps;
};

/// kUnsupported for more than kKernelDims dimensions that do not continue each other.
KernelLayout make_kernel_layout(const Shape& shape, std::span<const Tensor> tensors);

/// The batch entries of two operands of products: their first elements, broadcast to the batch.
KernelLayout make_batch_layout(const Shape& batch, const std::array<Tensor, 2>& operands);

/// This tensor if its elements are aligned as kernels need them, else a copy that is.
Tensor aligned_for_kernels(Launcher& launcher, const Tensor& tensor);

}  // namespace penstock::ops
