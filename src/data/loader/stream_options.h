#pragma once

#include "penstock/loader.h"

namespace penstock::data {

/// The options of a stream's loader as those of a loader over all numbers, without ranks. kInvalidArgument for what a
/// stream cannot heed.
LoaderOptions as_endless(LoaderOptions options);

}  // namespace penstock::data
