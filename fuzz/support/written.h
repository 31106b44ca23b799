#pragma once

#include "penstock/load.h"
#include "penstock/value.h"

namespace penstock::fuzz {

/// Writes a value in every format, and as a distributed checkpoint: what is read back is the same, or writing is
/// refused. `archive`: the file that it was loaded from, which is also written without loading it; or null.
void check_written(const Value& value, const Archive* archive = nullptr);

}  // namespace penstock::fuzz
