#pragma once

/// One type for samples of several types.

#include <stop_token>

#include "penstock/dataset.h"
#include "penstock/integer.h"

namespace penstock {

struct PromoteOptions {
  /// Threads, as LoaderOptions::num_workers.
  Integer num_workers = -1;
  /// Ends the search by kCancelled.
  std::stop_token stop = {};
};

/// The dataset with the tensors of one place in its samples (the only one, or that under a key) cast to the type that
/// promote_types (ops.h) gives for those of all samples, which is found in headers: no payload is read. Datasets of one
/// type stay as they are. For a type of your choice, use Dataset::cast. kUnsupported where tensors of several types lie
/// in places that no key tells apart, and behind functions of samples; kDTypeMismatch for types that have none in
/// common.
Dataset promote(const Dataset& dataset, const PromoteOptions& options = {});

}  // namespace penstock
