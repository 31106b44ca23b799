#pragma once

#include <cstdint>

#include "penstock/load.h"

namespace penstock::fuzz {

inline constexpr std::uint64_t kMostPayload = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kMostReadOnce = std::uint64_t{16} << 20;  ///< more than that is not read at all

/// Whether all that a file says to hold is little enough to be read many times over.
inline bool is_small(const Archive& archive) {
  std::uint64_t left = kMostPayload;
  const auto take = [&left](std::uint64_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  for (const StorageEntry& storage : archive.storages()) {
    if (!take(storage.nbytes)) return false;
  }
  for (const TensorEntry& entry : archive.entries()) {
    if (!take(entry.nbytes())) return false;
  }
  return true;
}

}  // namespace penstock::fuzz
