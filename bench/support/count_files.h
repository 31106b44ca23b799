#pragma once

// The files that bench_counts reads: always the same bytes, under the same names.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "penstock/random.h"
#include "penstock/save.h"
#include "penstock/value.h"

namespace penstock::bench {

constexpr std::size_t kCountedFiles = 256;
constexpr std::int64_t kCountedRows = 4096;
constexpr std::int64_t kStateTensors = 2000;
constexpr std::int64_t kManyTensors = 10'000;
constexpr std::int64_t kLargeElements = std::int64_t{1} << 18;  ///< a megabyte
constexpr std::size_t kLargeFiles = 32;
constexpr std::int64_t kLargeSample = 80'000;  ///< elements of a sample that is not read whole, 320 KB
constexpr std::size_t kTreeFolders = 100;
constexpr std::size_t kTreeFiles = 100;  ///< in each folder

inline Value state_of(std::int64_t tensors, const Shape& shape, Generator& generator) {
  std::vector<std::pair<std::string, Value>> items;
  for (std::int64_t i = 0; i < tensors; ++i) {
    items.emplace_back(core::format("layer{}.weight", i), Value::tensor(randn(shape, generator)));
  }
  return Value::dict(std::move(items));
}

/// A dict of a tensor of 100 to 400 rows and a label.
inline Value ragged_sample(std::int64_t label, Generator& generator) {
  const Tensor rows = randint(100, 401, {1}, generator);
  std::vector<std::pair<std::string, Value>> items;
  items.emplace_back("x", Value::tensor(randn({rows.values<std::int64_t>()[0], 16}, generator)));
  items.emplace_back("y", Value::integer(label));
  return Value::dict(std::move(items));
}

/// Folders of empty files. Made in a shuffled order, which is what a listing of most file systems gives.
inline void make_tree(const std::filesystem::path& root) {
  std::mt19937 random(1);
  std::vector<std::size_t> order(kTreeFiles);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t folder = 0; folder < kTreeFolders; ++folder) {
    const std::filesystem::path path = root / core::format("{:02}", folder);
    std::filesystem::create_directories(path);
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t file : order) std::ofstream(path / core::format("{:05}.npy", file));
  }
}

/// Folders of files that a loader reads straight into its batches.
inline void make_large_files(const std::filesystem::path& root, Generator& generator) {
  for (const std::string extension : {"npy", "pt", "safetensors", "npz"}) {
    const std::filesystem::path folder = root / ("large_" + extension);
    std::filesystem::create_directories(folder);
    for (std::size_t i = 0; i < kLargeFiles; ++i) {
      const bool is_bare = extension == "npy" || extension == "pt";
      const Value sample =
          is_bare ? Value::tensor(randn({kLargeSample}, generator)) : state_of(2, {kLargeSample / 2}, generator);
      save(sample, (folder / core::format("{:05}.{}", i, extension)).string(), {.sync = false});
    }
  }
}

inline void make_count_files(const std::filesystem::path& root) {
  Generator generator(1);
  const SaveOptions options{.sync = false};
  for (const char* folder : {"pt", "npy", "ragged"}) std::filesystem::create_directories(root / folder);
  for (std::size_t i = 0; i < kCountedFiles; ++i) {
    const auto path = [&](const char* folder, const char* extension) {
      return (root / folder / core::format("{:05}.{}", i, extension)).string();
    };
    const Tensor tensor = randn({64, 64}, generator);
    save(tensor, path("pt", "pt"), options);
    save(tensor, path("npy", "npy"), options);
    save(ragged_sample(static_cast<std::int64_t>(i % 10), generator), path("ragged", "pt"), options);
  }
  save(randn({kCountedRows, 768}, generator), (root / "rows.npy").string(), options);
  save(randn({256}, generator), (root / "one.npy").string(), options);
  save(randn({256}, generator), (root / "one.pt").string(), options);
  const Value state = state_of(kStateTensors, {256}, generator);
  save(state, (root / "state.pt").string(), options);
  save(state, (root / "state.safetensors").string(), options);
  save(state_of(kManyTensors, {4}, generator), (root / "many.safetensors").string(), options);
  save(randn({kLargeElements}, generator), (root / "large.pt").string(), options);
  save(state_of(1, {kLargeElements * 2}, generator), (root / "large.safetensors").string(), options);
  make_large_files(root, generator);
  make_tree(root / "tree");
}

}  // namespace penstock::bench
