#pragma once

// `penstock report A B`: the data of the page.

#include "archive/inspect/comparison.h"
#include "cli/json/json_writer.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Writes how values are compared into the object that is open.
void write_how(JsonWriter& out, const archive::CompareOptions& how);

/// Writes what a page shows of two files into the object that is open.
void write_diff(JsonWriter& out, const Archive& a, const Archive& b, const archive::Comparison& comparison);

}  // namespace penstock::cli
