#pragma once

#include "io/move/move.h"
#include "penstock/report.h"

namespace penstock::io {

/// Runs a move. Threads take ranges and read each into its final memory. Memory of a device is filled through the
/// pinned ring, or by the device itself (io/move/device_routes.h). On error everything in flight is finished or dropped
/// before the first error is rethrown, with the source's path. Adds bytes and seconds to `report`.
void execute(const Move& move, const EngineOptions& options, Report& report);

}  // namespace penstock::io
