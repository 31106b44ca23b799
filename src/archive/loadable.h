#pragma once

// What every way of loading asks first, and what it tells the engine.

#include "archive/archive_state.h"
#include "io/move/engine.h"
#include "penstock/load.h"

namespace penstock::archive {

/// Refuses what cannot be loaded: kUnsafe for an array of objects, kNoDevice, kUnsupported for a map on a device.
void require_loadable(const detail::ArchiveState& state, const TensorEntry& entry, const LoadOptions& options);

/// The options of the engine, from those of a load.
inline io::EngineOptions engine_options(const LoadOptions& options) {
  return {.threads = options.threads,
          .stop = options.stop,
          .direct = options.direct,
          .gds = options.gds,
          .explain = options.report != nullptr};
}

}  // namespace penstock::archive
