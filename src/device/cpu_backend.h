#pragma once

#include "device/backend.h"

namespace penstock::device {

/// Host memory; its queues run everything at once.
const Backend& cpu_backend() noexcept;

}  // namespace penstock::device
