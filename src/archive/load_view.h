#pragma once

#include <cstdint>
#include <optional>

#include "archive/archive_state.h"
#include "io/move/engine.h"
#include "penstock/load.h"

namespace penstock::archive {

/// What a view is part of, which decides whether its CRC is verified.
enum class Extent : std::uint8_t {
  kWhole,  ///< a tensor of the file. Its record is verified, if need be by reading all of it
  kSlice,  ///< part of a tensor. Only its own bytes are read, and verified only when they are all of the record
};

/// Loads one entry of the archive, or a slice of one, into memory of its own. Reads only its bytes and short gaps
/// between them; a deflated storage is inflated whole. Elements without holes between them in the file keep their
/// strides (Fortran order stays), others become contiguous. Dimensions of stride 0 stay so. Maps instead if the options
/// ask for it. Fills in the report except for its total.
Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options, Report& report,
                 Extent extent = Extent::kWhole);

/// The check of a storage's CRC by a read of [byte_offset, + length) of the storage into a buffer. Nothing when there
/// is no CRC to check, or the read leaves out more than a header in front. The header is read here.
std::optional<io::Checksum> checksum_of_run(const detail::ArchiveState& state, const TensorEntry& view,
                                            std::uint64_t length, const LoadOptions& options);

}  // namespace penstock::archive
