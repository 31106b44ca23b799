#pragma once

#include <memory>

#include "data/sample/host.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The same samples and batches, whose functions of the program are called by `host`: a loader over it needs to know of
/// nothing else.
Dataset hosted(const Dataset& dataset, std::shared_ptr<Host> host);

}  // namespace penstock::data
