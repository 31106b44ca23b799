#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "io/move/engine.h"
#include "penstock/load.h"

namespace penstock::archive {

/// Refuses what no load can do: kUnsafe for an array of objects, kNoDevice, kUnsupported for a map on a device.
void require_loadable(const detail::ArchiveState& state, const TensorEntry& entry, const LoadOptions& options);

/// What of the options is the engine's.
inline io::EngineOptions engine_options(const LoadOptions& options) {
  return {.threads = options.threads,
          .stop = options.stop,
          .direct = options.direct,
          .gds = options.gds,
          .explain = options.report != nullptr};
}

/// What becomes of bytes that the archive has in memory.
enum class Resident : std::uint8_t {
  kCopied,
  kHandedOut,  ///< where they are aligned as what is read: nobody loads from the archive again
};

/// Loads `wanted` (entries of the archive, or slices): each storage they lie in is read once and whole, into common
/// blocks in the order of the files, and tensors that share it still do. A tensor whose bytes must be changed in a way
/// that the others of its storage are not (byte order, conj and neg) or that would not be aligned gets memory of its
/// own. Maps instead where options ask for it. Fills in the report but for its total, and its `why` where
/// `options.report` is set.
std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                 const LoadOptions& options, Report& report, Resident resident = Resident::kCopied);

}  // namespace penstock::archive
