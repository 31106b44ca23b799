#pragma once

#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "archive/whole_load.h"
#include "penstock/load.h"

namespace penstock::archive {

/// As load_whole; maps instead if the options ask for it.
std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                 const LoadOptions& options, Report& report, Resident resident = Resident::kCopied);

}  // namespace penstock::archive
