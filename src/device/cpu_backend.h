#pragma once

// The row of the CPU in the table of backends.

#include "device/backend.h"

namespace penstock::device {

/// Host memory; its queues run everything at once.
const Backend& cpu_backend() noexcept;

}  // namespace penstock::device
