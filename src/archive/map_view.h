#pragma once

#include "archive/archive_state.h"
#include "penstock/load.h"

namespace penstock::archive {

/// A read-only view of the mapped file for `view`, which is an entry or a slice of one. An undefined tensor when its
/// elements would not be aligned; the caller then reads it. kUnsupported when the file cannot be mapped, or the bytes
/// are not the values (compressed, other byte order, conj or neg bit). Storages in memory give views of that memory.
Tensor map_view(const detail::ArchiveState& state, const TensorEntry& view);

/// Fills in the report of a load that mapped `mapped` tensors and copied `copied` ones that it could not map.
void report_mapped(std::size_t mapped, std::size_t copied, Report& report);

}  // namespace penstock::archive
