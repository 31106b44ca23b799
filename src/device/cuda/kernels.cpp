#include "device/cuda/kernels.h"

namespace penstock::device::cuda {

std::span<const KernelModule> kernel_modules() noexcept { return {}; }

}  // namespace penstock::device::cuda
