#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

/// What a load does with bytes that the archive has in memory.
enum class Resident : std::uint8_t {
  kCopied,
  kHandedOut,  ///< tensors share them if they are aligned. Only when nobody loads from the archive again
};

/// Loads `wanted`, which are entries of the archive or slices of them. Each storage is read once and whole, into common
/// blocks in the order of the files, and tensors that share a storage in the file share it in memory. A tensor gets
/// memory of its own when its bytes must be changed and those of other tensors of its storage must not (byte order,
/// conj and neg bits), or when it would not be aligned. Maps instead if the options ask for it. Fills in the report
/// except for its total; its `why` only if `options.report` is set.
std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                 const LoadOptions& options, Report& report, Resident resident = Resident::kCopied);

}  // namespace penstock::archive
