#include "format/unloaded.h"

#include <optional>

namespace penstock::format {

TensorFacts facts_of(const Value& tensor, std::span<const TensorEntry> entries) {
  if (const std::optional<std::size_t> number = tensor.entry_index(); number && *number < entries.size()) {
    const TensorEntry& entry = entries[*number];
    return {entry.dtype, entry.shape, entry.strides, entry.nbytes(), entry.requires_grad};
  }
  const Tensor& loaded = tensor.as_tensor();
  return {loaded.dtype(), loaded.shape(), loaded.strides(), loaded.nbytes(), loaded.requires_grad()};
}

}  // namespace penstock::format
