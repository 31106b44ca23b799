#pragma once

// Files without a header as what a loader takes, for the commands that run one.

#include "cli/headerless.h"
#include "cli/tensor_files.h"
#include "penstock/dataset.h"

namespace penstock::cli {

/// The rows of one file that is named; of several files one sample each.
Dataset headerless_samples(const TensorFiles& files, const Headerless& headerless);

}  // namespace penstock::cli
