#pragma once

#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "penstock/load.h"

namespace penstock::archive {

/// An entry of the archive, or one over a storage of it, and the memory it is to be read into.
struct Destination {
  const TensorEntry* entry = nullptr;
  Tensor to;
};

/// Checks all destinations, then reads each entry into its tensor. Those whose bytes are the values, one behind the
/// other in the file and in memory, are read into place in one move; the others one by one through memory of their own,
/// on the same device. Fills in the report but for its total.
void load_into(const detail::ArchiveState& state, std::span<const Destination> destinations, const LoadOptions& options,
               Report& report);

/// The destinations that placements name. kIndexOutOfRange.
std::vector<Destination> destinations_of(const detail::ArchiveState& state, std::span<const Placement> placements);
/// The same for storages, by the entries `whole` that cover each of them; those without one are left out.
/// kIndexOutOfRange, kShapeMismatch where the memory is not as many contiguous bytes.
std::vector<Destination> destinations_of(const detail::ArchiveState& state, std::span<const TensorEntry> whole,
                                         std::span<const StoragePlacement> placements);

}  // namespace penstock::archive
