#pragma once

// Arrays as WebDataset keeps them in fields `.ten` and `.tb`: docs/formats/tenbin.md has the bytes. They are read by
// the row kTenbinFormat (format/rows.h); only fields of shards are written.

#include "io/file/output.h"
#include "penstock/value.h"

namespace penstock::format {

/// A list of tensors, or one as a list of one. kUnsupported for anything else, and for types that the form has none
/// for.
void write_tenbin(const Value& value, io::ByteSink& sink);

}  // namespace penstock::format
