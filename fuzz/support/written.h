#pragma once

#include "penstock/value.h"

namespace penstock::fuzz {

/// Writes a value in every format, and as a distributed checkpoint: what is read back is the same, or writing is
/// refused.
void check_written(const Value& value);

}  // namespace penstock::fuzz
