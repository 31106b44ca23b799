#pragma once

#include <memory>
#include <string_view>

#include "archive/archive_state.h"
#include "penstock/value.h"

namespace penstock::archive {

/// What `part` lies in: an archive of the tensors that it leads to and no others. `part`: a value over the entries of
/// `state`. Names lose `stem`, which those of its tensors begin with; a tensor that only another part has a name for
/// keeps that.
std::shared_ptr<const detail::ArchiveState> narrowed(const detail::ArchiveState& state, const Value& part,
                                                     std::string_view stem);

}  // namespace penstock::archive
