#pragma once

#include "archive/inspect/comparison.h"
#include "cli/json/json_writer.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Writes what the page of two files shows.
void write_diff(JsonWriter& out, const Archive& a, const Archive& b, const archive::CompareOptions& how,
                const archive::Comparison& comparison);

}  // namespace penstock::cli
