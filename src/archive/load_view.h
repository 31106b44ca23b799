#pragma once

#include <cstdint>
#include <optional>

#include "archive/archive_state.h"
#include "io/move/engine.h"
#include "penstock/load.h"

namespace penstock::archive {

enum class Extent : std::uint8_t {
  kWhole,  ///< a tensor of the file: the record it lies in is verified
  kSlice,  ///< part of one: only its own bytes are read, and verified only where they are all of the record
};

/// Loads one entry of the archive, or a slice of one, into memory of its own, reading no more than its bytes and short
/// gaps between them; a deflated storage is inflated whole. Elements that lie without holes in the file keep their
/// strides (Fortran order stays), others become contiguous; repeated ones (stride 0) stay so. Maps instead where
/// options ask for it. Fills in the report but for its total.
Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options, Report& report,
                 Extent extent = Extent::kWhole);

/// How the recorded CRC of a storage is checked by reading [byte_offset, + length) of it to a place in a buffer;
/// nothing where there is none to check, or the read leaves out more than a header in front. That header is read here.
std::optional<io::Checksum> checksum_of_run(const detail::ArchiveState& state, const TensorEntry& view,
                                            std::uint64_t length, const LoadOptions& options);

}  // namespace penstock::archive
