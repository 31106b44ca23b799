#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "core/round.h"

namespace penstock::device {

/// The size of the block that is allocated for `bytes`: a multiple of an eighth of the power of two below it, or of
/// `granule` where that is more. Blocks of few sizes are kept, so that a later request of about that size finds one.
/// What is too large to be rounded stays as it is, and the driver refuses it.
constexpr std::size_t rounded_to_eighth(std::size_t bytes, std::size_t granule) noexcept {
  return core::round_up(bytes, std::max(std::bit_floor(bytes) / 8, granule));
}

}  // namespace penstock::device
