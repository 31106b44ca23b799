#pragma once

#include "penstock/value.h"

namespace penstock::fuzz {

/// Saves a value as a distributed checkpoint, twice into one folder: what is read back is what docs/formats/dcp.md says
/// is written of it, or saving is refused and leaves no folder.
void check_written_checkpoint(const Value& value);

}  // namespace penstock::fuzz
