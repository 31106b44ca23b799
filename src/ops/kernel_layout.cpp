#include "ops/kernel_layout.h"

#include "core/format.h"
#include "ops/device_ops.h"
#include "penstock/error.h"

namespace penstock::ops {
namespace {

/// How far apart elements of `tensor`, broadcast to `rank` dimensions, lie along `dim`.
std::int64_t step_along(const Tensor& tensor, std::size_t rank, std::size_t dim) {
  const std::size_t extra = rank - tensor.rank();
  if (dim < extra || tensor.shape()[dim - extra] == 1) return 0;
  return tensor.strides()[dim - extra] * static_cast<std::int64_t>(tensor.dtype().itemsize());
}

}  // namespace

KernelLayout make_kernel_layout(const Shape& shape, std::span<const Tensor> tensors) {
  KernelLayout out{};
  out.shape.count = static_cast<std::uint64_t>(shape.numel());
  unsigned& rank = out.shape.rank;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    bool continues = rank > 0;
    for (std::size_t t = 0; t < tensors.size() && continues; ++t) {
      continues = out.steps[t].steps[rank - 1] == shape[d] * step_along(tensors[t], shape.rank(), d);
    }
    if (!continues && rank == kKernelDims) {
      throw Error(
          ErrorCode::kUnsupported,
          core::format("shape {} with these strides has more than the {} dimensions that devices work with; make "
                       "the operands contiguous()",
                       shape.to_string(), kKernelDims));
    }
    const unsigned at = continues ? rank - 1 : rank++;
    out.shape.sizes[at] = continues ? out.shape.sizes[at] * shape[d] : shape[d];
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      out.steps[t].steps[at] = step_along(tensors[t], shape.rank(), d);
    }
  }
  return out;
}

KernelLayout make_batch_layout(const Shape& batch, const std::array<Tensor, 2>& operands) {
  std::array<Tensor, 2> first;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t rank = operands[i].rank();
    first[i] = operands[i].select(rank - 1, 0).select(rank - 2, 0);
  }
  return make_kernel_layout(batch, first);
}

Tensor aligned_for_kernels(Launcher& launcher, const Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data());
  if (address % tensor.dtype().itemsize() == 0) return tensor;
  Tensor out = Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
  copy_on_device(launcher, tensor, out);
  return out;
}

}  // namespace penstock::ops
