#pragma once

#include "archive/archive_state.h"
#include "penstock/load.h"

namespace penstock::archive {

/// What `view`, which is an entry or a slice of one, spans of the mapped file, read-only. Nothing when its elements
/// would not be aligned, or lie in several places; the caller then reads them. kUnsupported when the file cannot be
/// mapped, or the bytes are not the values (compressed, other byte order, conj or neg bit). Storages in memory give
/// that memory.
Buffer map_view(const detail::ArchiveState& state, const TensorEntry& view);

/// Refuses options that ask for other memory than a map, or for a way to read it: kUnsupported.
void require_map_alone(const LoadOptions& options);

/// Fills in the report of a load that mapped `mapped` tensors and copied `copied` ones that it could not map.
void report_mapped(std::size_t mapped, std::size_t copied, Report& report);

}  // namespace penstock::archive
