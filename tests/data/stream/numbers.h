#pragma once

// Streams of numbers, as loaders read them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/loader.h"

namespace penstock::test {

using Numbers = std::vector<std::int64_t>;

inline LoaderOptions options(std::int64_t batch_size, std::size_t workers, OnError on_error = OnError::kRaise) {
  return {.batch_size = batch_size, .num_workers = workers, .on_error = on_error};
}

/// The numbers of all batches, one after the other.
inline Numbers flat(const std::vector<Numbers>& batches) {
  Numbers out;
  for (const Numbers& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

}  // namespace penstock::test
