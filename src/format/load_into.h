#pragma once

#include <span>

#include "format/archive_state.h"
#include "penstock/load.h"

namespace penstock::format {

/// Checks all of `placements`, then reads each entry into its tensor. Those whose bytes are the values, one behind the
/// other in the file and in memory, are read into place in one move; the others one by one through memory of their own.
/// Fills in the report but for its total.
void load_into(const detail::ArchiveState& state, std::span<const Placement> placements, const LoadOptions& options,
               Report& report);

}  // namespace penstock::format
