#pragma once

#include "io/move/move.h"

namespace penstock::io {

/// Checks everything that a reading thread relies on: sources, buffers and targets exist, and targets lie inside
/// writable buffers and take all of their range. kInvalidArgument otherwise.
void check(const Move& move);

}  // namespace penstock::io
