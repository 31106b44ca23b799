#pragma once

#include <cstddef>
#include <span>

namespace penstock::io {

/// std::memcpy that writes past the caches where the processor can: memory is not fetched to be overwritten, and what
/// is in the caches stays. For more than they hold. Complete for other threads on return.
void stream_copy(std::byte* to, std::span<const std::byte> from) noexcept;

}  // namespace penstock::io
