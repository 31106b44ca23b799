#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::data {

/// Where one tensor of each sample of a batch is expected to go, known before the samples are fetched: a dataset may
/// read payload directly into these slots, and such payload is not copied again. Plain data in a Scratch.
struct ExpectedSlots {
  const void* dataset = nullptr;  ///< whose samples these are; null when nothing is expected
  std::uint32_t tensor = 0;       ///< its number in each sample
  std::uint64_t bytes = 0;        ///< of each slot
  std::byte* first = nullptr;     ///< slot, the others behind it

  std::byte* slot(std::size_t position) const noexcept { return first + position * bytes; }
};

}  // namespace penstock::data
