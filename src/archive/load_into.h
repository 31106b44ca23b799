#pragma once

#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "archive/read_units.h"
#include "penstock/load.h"

namespace penstock::archive {

/// An entry and the memory to read it into. The entry may be one of the archive, or one made for a whole storage
/// (whole_storages.h).
struct Destination {
  const TensorEntry* entry = nullptr;
  Tensor to;
  Extent extent = Extent::kWhole;  ///< of a slice no checksum is verified that its own bytes do not give
};

/// Checks all destinations, then reads each entry into its tensor. Entries that are contiguous in the file and in
/// memory are brought to their place together. The others are loaded one by one into memory of their own on the same
/// device, and copied. Fills in the report except for its total.
void load_into(const detail::ArchiveState& state, std::span<const Destination> destinations, const LoadOptions& options,
               Report& report);

/// The destinations that placements name. kIndexOutOfRange.
std::vector<Destination> destinations_of(const detail::ArchiveState& state, std::span<const Placement> placements);
/// The same for storages, by the entries `whole` that cover each of them; those without one are left out.
/// kIndexOutOfRange, kShapeMismatch where the memory is not as many contiguous bytes.
std::vector<Destination> destinations_of(const detail::ArchiveState& state, std::span<const TensorEntry> whole,
                                         std::span<const StoragePlacement> placements);

}  // namespace penstock::archive
