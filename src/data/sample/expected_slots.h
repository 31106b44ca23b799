#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "penstock/buffer.h"

namespace penstock::data {

/// Where one tensor of each sample of a batch is expected to go, known before the samples are fetched: a dataset may
/// read payload directly into these slots, and such payload is not copied again. They are for the samples of one
/// dataset, sample by sample as they are asked for. Others see that they are not meant, so that a dataset which knows
/// nothing of slots passes them on without harm.
struct ExpectedSlots {
  const void* dataset = nullptr;  ///< whose samples these are; null when nothing is expected
  std::uint32_t tensor = 0;       ///< its number in each sample
  std::uint64_t bytes = 0;        ///< of each slot
  std::byte* first = nullptr;     ///< slot, the others behind it
  const Buffer* block = nullptr;  ///< in which they lie

  std::byte* slot(std::size_t position) const noexcept { return first + position * bytes; }
  Buffer buffer(std::size_t position) const {
    return block->part(static_cast<std::size_t>(slot(position) - block->data()), static_cast<std::size_t>(bytes));
  }
  /// Those from `position` on.
  ExpectedSlots from(std::size_t position) const noexcept {
    ExpectedSlots out = *this;
    out.first = slot(position);
    return out;
  }
  /// For the dataset `to`, from which `from` has its samples at the same places; the tensor is one of `to`'s, which are
  /// `count` from number `begin` on. Nothing where they are not for `from`, or of another part's tensor.
  ExpectedSlots handed_on(const void* from, const void* to, std::size_t begin = 0,
                          std::size_t count = std::numeric_limits<std::size_t>::max()) const noexcept {
    if (dataset != from || tensor < begin || tensor - begin >= count) return {};
    ExpectedSlots out = *this;
    out.dataset = to;
    out.tensor = static_cast<std::uint32_t>(tensor - begin);
    return out;
  }
};

}  // namespace penstock::data
