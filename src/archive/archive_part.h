#pragma once

#include <memory>
#include <string_view>

#include "archive/archive_state.h"
#include "penstock/value.h"

namespace penstock::archive {

/// An archive of the tensors in `part`, which is a value over the entries of `state`, and of no others. `stem` is
/// removed from the beginning of names. A tensor whose only name does not begin with it keeps its name.
std::shared_ptr<const detail::ArchiveState> narrowed(const detail::ArchiveState& state, const Value& part,
                                                     std::string_view stem);

}  // namespace penstock::archive
