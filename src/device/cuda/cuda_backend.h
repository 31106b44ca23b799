#pragma once

// The row of CUDA in the table of backends (device/backends.cpp).

#include "device/backend.h"

namespace penstock::device {

/// NVIDIA's devices, through the driver's library, which is opened at run time.
const Backend& cuda_backend() noexcept;

}  // namespace penstock::device
