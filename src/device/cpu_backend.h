#pragma once

#include <cstddef>

#include "device/backend.h"

namespace penstock::device {

/// Blocks of this size and more are mapped on their own, aligned to it, and ask for huge pages.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Host memory; its queues run everything at once.
const Backend& cpu_backend() noexcept;

}  // namespace penstock::device
