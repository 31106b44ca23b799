#pragma once

/// Many small sample files become a few large ones, which load several times as fast. `pack` writes them, `packed` is
/// the dataset of what it wrote.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "penstock/dataset.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/loader.h"
#include "penstock/text_view.h"

namespace penstock {

struct PackOptions {
  /// About how many bytes a shard holds: the number of samples in it follows from the mean size of some. At least one
  /// sample.
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;
  /// "safetensors", or "tar": 00000.tar and so on, which WebDataset and `shards` read. Samples keep their parts there,
  /// texts and bytes too, by the rules of Writer::add_sample; those without a "__key__" are numbered.
  std::string format = "safetensors";
  /// Threads that read samples ahead, as LoaderOptions::num_workers, with shard_bytes for its memory_budget.
  Integer num_workers = LoaderOptions::kAutoWorkers;
  Flag verify = true;
  /// Called after each shard, in the calling thread, with the samples written so far. What it throws is thrown.
  std::function<void(std::int64_t samples)> progress = {};
  /// Setting it stops the call with kCancelled, and no folder appears.
  std::stop_token stop = {};
};

struct PackSummary {
  std::int64_t samples = 0;
  std::int64_t shards = 0;
  std::uint64_t bytes = 0;  ///< of the files
};

/// Writes the samples of a dataset, in order, into a few large `.safetensors` files: 00000.safetensors and so on in
/// `folder`. The folder appears with all of them or not at all; when it exists already, it must be empty. `folder` may
/// be a prefix of a bucket (s3, gs, az) that no object has: everything is uploaded before the first object appears,
/// and when one fails to, the others are removed. Each tensor and number of the samples becomes an array: stacked where
/// all samples of a shard have one shape; where dimension 0 differs, laid end to end, with an array of offsets. Any
/// reader of safetensors finds them there; `packed` gives the samples back. docs/formats/packed.md describes the files.
/// kUnsupported for text, None and complex numbers, for empty samples, and for dtypes that safetensors lacks.
/// kShapeMismatch and kDTypeMismatch name the first sample that has another form than those before it. Errors of a
/// sample name its file. Errors of `save` too.
PackSummary pack(const Dataset& dataset, TextView folder, const PackOptions& options = {});

/// The samples that `pack` wrote: those of every file that `pattern` matches (a folder, a glob or a file, as of
/// `files`), one file after the other. The files are mapped or read by the rules of `rows`, which look at the size of
/// all of them together; offsets are checked. Numbers come back as tensors without dimensions. kNotFound where a file
/// of those that `pack` wrote is missing from the folder (one that is named alone is read alone), kCorrupt for a file
/// that contradicts itself, kInvalidArgument for one that `pack` did not write, kShapeMismatch and kDTypeMismatch when
/// its samples do not have the form of the first file's.
Dataset packed(TextView pattern, OptionalFlag mmap = {});

}  // namespace penstock
