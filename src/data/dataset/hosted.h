#pragma once

#include <memory>

#include "data/sample/host.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The same samples and batches, whose functions of the program are called by `host`: a loader over it needs to know of
/// nothing else.
Dataset hosted(const Dataset& dataset, std::shared_ptr<Host> host);
/// That of such a dataset; null of another.
Host* host_of(const Dataset& dataset) noexcept;

}  // namespace penstock::data
