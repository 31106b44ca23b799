#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>

#include "penstock/dataset.h"
#include "penstock/loader.h"

namespace penstock {

struct PackOptions {
  /// What a shard holds, about: samples are counted by the mean of some. At least one sample.
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;
  /// Threads that read samples ahead, within shard_bytes as LoaderOptions::memory_budget; as its num_workers.
  std::size_t num_workers = LoaderOptions::kAutoWorkers;
  bool verify_checksums = true;
  /// Called behind each shard with the samples written so far, by the calling thread.
  std::function<void(std::int64_t samples)> progress = {};
  /// kCancelled soon after it is set, and nothing appears.
  std::stop_token stop = {};
};

struct PackSummary {
  std::int64_t samples = 0;
  std::int64_t shards = 0;
  std::uint64_t bytes = 0;  ///< of the files
};

/// Writes the samples of a dataset, in order, into a few large `.safetensors` files: 00000.safetensors and so on in
/// `folder`, which appears with all of them or not at all, and must be empty if it is there. Each tensor and number of
/// the samples becomes an array: stacked where all of a shard have one shape; where dimension 0 differs, laid end to
/// end, with an array of offsets. Any reader of safetensors finds them there; `packed` gives the samples back.
/// docs/formats/packed.md describes the files. kUnsupported for text, None and complex numbers, for empty samples, and
/// for dtypes that safetensors has not; kShapeMismatch and kDTypeMismatch name the first sample that is of another form
/// than the ones before. Errors of a sample name its file; those of `save`.
PackSummary pack(const Dataset& dataset, std::string_view folder, const PackOptions& options = {});

/// The samples that `pack` wrote: those of every file that `pattern` matches (a folder, a glob or a file, as of
/// `files`), one after the other. The files are mapped or read as by `rows`, by what all of them take together, and
/// offsets are checked. Numbers come back as tensors without dimensions. kCorrupt for a file that contradicts itself,
/// kInvalidArgument for one that `pack` did not write, kShapeMismatch and kDTypeMismatch where its samples are not of
/// the form of the first file's.
Dataset packed(std::string_view pattern, std::optional<bool> map = {});

}  // namespace penstock
