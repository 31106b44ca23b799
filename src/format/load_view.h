#pragma once

#include "format/archive_state.h"
#include "penstock/load.h"

namespace penstock::format {

/// Loads one entry of the archive, or a slice of one, into memory of its own, reading no more than its bytes and short
/// gaps between them; a deflated storage is inflated whole. Elements that lie without holes in the file keep their
/// strides (Fortran order stays), others become contiguous; repeated ones (stride 0) stay so. Maps instead where
/// options ask for it. Fills in the report but for its total.
Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                 Report& report);

}  // namespace penstock::format
