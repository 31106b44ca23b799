#pragma once

#include <memory>

#include "data/sample/runner.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The same samples and batches, whose functions of the program are called by `runner`: a loader over it needs to know
/// of nothing else.
Dataset with_runner(const Dataset& dataset, std::shared_ptr<Runner> runner);
/// That of such a dataset; null of another.
Runner* runner_of(const Dataset& dataset) noexcept;

}  // namespace penstock::data
