#pragma once

#include "archive/archive_state.h"
#include "penstock/load.h"

namespace penstock::archive {

/// `view` (an entry or a slice of one) as a read-only view of the mapped file; an undefined tensor where its elements
/// would not be aligned, so that it has to be read. kUnsupported where the file cannot be mapped or the bytes are not
/// the values (compressed, other byte order, conj or neg). Storages in memory give views of that.
Tensor map_view(const detail::ArchiveState& state, const TensorEntry& view);

/// What a report says of `mapped` tensors that were mapped and `copied` ones that could not be.
void report_mapped(std::size_t mapped, std::size_t copied, Report& report);

}  // namespace penstock::archive
