#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/dcp/checkpoint.h"

namespace penstock::test {

using Sizes = std::vector<std::int64_t>;

/// Cuts [0, size) into random pieces.
inline Sizes cuts(std::mt19937& random, std::int64_t size) {
  Sizes out{0};
  for (std::int64_t i = 1; i < size; ++i) {
    if (random() % 3 == 0) out.push_back(i);
  }
  out.push_back(size);
  return out;
}

/// Adds `tensor` in chunks of a random grid, in several files, in any order.
inline void add_in_grid(MadeCheckpoint& made, const std::string& name, const Tensor& tensor, std::mt19937& random) {
  const Sizes size(tensor.shape().begin(), tensor.shape().end());
  std::vector<std::pair<Sizes, Sizes>> boxes{{{}, {}}};
  for (const std::int64_t dim : size) {
    const Sizes at = cuts(random, dim);
    std::vector<std::pair<Sizes, Sizes>> next;
    for (const auto& [begin, sizes] : boxes) {
      for (std::size_t i = 0; i + 1 < at.size(); ++i) {
        next.push_back({begin, sizes});
        next.back().first.push_back(at[i]);
        next.back().second.push_back(at[i + 1] - at[i]);
      }
    }
    boxes = std::move(next);
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  std::vector<MadeChunk> chunks;
  for (const auto& [at, sizes] : boxes) {
    chunks.push_back(made.put("__" + std::to_string(random() % 3) + "_0.distcp", tensor, at, sizes));
  }
  chunks.push_back({size, Sizes(size.size(), 0), chunks.front().file, chunks.front().offset, 0});  // an empty rank
  made.tensor(name, size, chunks);
}

}  // namespace penstock::test
