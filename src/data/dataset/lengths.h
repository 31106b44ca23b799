#pragma once

// Lengths of samples, for sampling by length and for packing sequences. They are read from headers alone, because the
// payload of a dataset may be larger than a program can read twice.

#include <cstdint>
#include <functional>

#include "data/sample/layout.h"
#include "penstock/error.h"
#include "penstock/lengths.h"

namespace penstock::data {

/// Calls `visit` with the layout of each sample, which is what its header says, in `options.num_workers` threads at
/// once. Errors of samples, also those that `visit` throws, are thrown as the loader's are: the first one by index.
void visit_headers(const Dataset& dataset, const LengthsOptions& options,
                   const std::function<void(std::int64_t index, const Layout& layout)>& visit);

/// The tensor of a sample whose length is meant. kShapeMismatch, kKeyNotFound, kDTypeMismatch.
const TensorLayout& meant_tensor(const Layout& layout, const LengthsOptions& options);
/// Its size along `options.dim`, which it has.
std::int64_t length_of(const TensorLayout& tensor, const LengthsOptions& options);

}  // namespace penstock::data
