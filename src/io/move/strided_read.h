#pragma once

// Reads a slice whose elements lie apart in the file, part by part (strided_plan.h), on several threads. Slices of
// whole rows are plain ranges and go through the engine.

#include <cstddef>
#include <stop_token>

#include "io/move/strided_plan.h"
#include "penstock/report.h"
#include "penstock/source.h"
#include "penstock/tensor.h"

namespace penstock::io {

struct StridedReadOptions {
  std::size_t threads = 0;  ///< 0: chosen from the bytes and the processors
  std::stop_token stop = {};
};

/// Copies elements between tensors of one shape and dtype in host memory. It is given from above, because operations on
/// elements are no part of io.
using CopyElements = void (*)(const Tensor& from, const Tensor& to);

/// Reads the elements of `view` into `to`: contiguous host memory of the same shape and item size. Parts that are
/// contiguous on both sides go straight to their place; others are read into a scratch and copied from there by `copy`.
/// Adds bytes and seconds to `report`. kTruncated, kIo, kCancelled.
void read_strided(const ByteSource& source, const StridedView& view, const Tensor& to, CopyElements copy,
                  const StridedReadOptions& options, Report& report);

}  // namespace penstock::io
