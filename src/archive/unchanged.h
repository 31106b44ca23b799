#pragma once

#include <span>

#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::archive {

/// For behind a read: kChanged when the source's file was written to, grown or replaced in place since it was opened,
/// kTruncated when it was cut. One system call; nothing for sources without a file.
void require_unchanged(const ByteSource& source);

/// What to throw when reading these sources failed by `error`: kChanged where one of them was written to meanwhile,
/// because what it said of the bytes then was about others; else `error`.
Error error_of_change(const Error& error, std::span<const Source> sources);

}  // namespace penstock::archive
