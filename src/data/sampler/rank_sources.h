#pragma once

// Where a process learns which rank it is: from the program that calls, and from the variables that launchers set. The
// two are compared, because a wrong rank reads the wrong samples without any error.

#include <optional>

#include "penstock/ranks.h"

namespace penstock::data {

/// kInvalidArgument unless 0 <= rank < size.
void require_ranks(const Ranks& ranks);

/// `ranks()` for a program that knows more than the environment does: `known` comes first, and kInvalidArgument says
/// which variables contradict it. Where its local ranks are not known, they are those of variables that agree with it.
Ranks reconciled(std::optional<Ranks> known);

}  // namespace penstock::data
