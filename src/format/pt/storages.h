#pragma once

// Which tensors of a value share memory, so that a `.pt` keeps it once and they share it again when it is loaded.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/entry.h"
#include "penstock/tensor.h"

namespace penstock::format {

/// One storage that a `.pt` is to hold: a span of memory that some tensors are views of.
struct PlannedStorage {
  Tensor bytes = {};   ///< uint8, the span; keeps the memory alive. Undefined where it is not loaded
  DType dtype;         ///< of all its tensors, when not mixed
  bool mixed = false;  ///< tensors of several dtypes lie in it
  std::uint64_t nbytes = 0;
  std::size_t number = 0;  ///< of one that is not loaded: in Unloaded
};

/// Which storage a tensor lies in, and where.
struct PlacedTensor {
  std::size_t storage = 0;
  std::int64_t offset = 0;  ///< in elements of the tensor
};

struct StoragePlan {
  std::vector<PlannedStorage> storages;
  std::vector<PlacedTensor> tensors;  ///< one for each tensor given

  /// Adds the storages that are not loaded, and a place for each of the entries in them.
  void add(std::span<const TensorEntry> entries, std::span<const std::uint64_t> storage_bytes);
};

/// Groups tensors by the memory they share. Tensors whose spans overlap, and tensors of one Buffer that lie near each
/// other, get one storage that just covers them. Tensors that are misaligned to each other cannot share and get their
/// own.
StoragePlan plan_storages(std::span<const Tensor> tensors);

}  // namespace penstock::format
