#pragma once

#include "io/move/engine.h"

namespace penstock::io {

/// Everything that a reading thread relies on: sources, buffers and targets that are there, targets that lie inside
/// writable buffers and take all of their range. kInvalidArgument for a move that is not so.
void check(const Move& move);

}  // namespace penstock::io
