#pragma once

#include <span>

#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::archive {

/// Call after a read. kChanged when the source's file was written to, grown or replaced in place since it was opened,
/// kTruncated when it was cut. Takes one system call; does nothing for sources without a file.
void require_unchanged(const ByteSource& source);

/// The error to throw when reading these sources failed by `error`: kChanged when one of them was written to meanwhile,
/// because the bytes that were read are then not those that the index describes; else `error`.
Error error_of_change(const Error& error, std::span<const Source> sources);

}  // namespace penstock::archive
