#pragma once

// How `diff` tells one place that differs, as text and as JSON.

#include "archive/inspect/comparison.h"
#include "cli/json/json.h"
#include "penstock/load.h"

namespace penstock::cli {

/// A comparison of two archives, and what it is told with.
struct Compared {
  const Archive& a;
  const Archive& b;
  const archive::Comparison& comparison;
};

/// A few lines for each place that differs.
void print_places(const Compared& compared);
/// The place as an object.
Json to_json(const Compared& compared, const archive::Mismatch& place);

}  // namespace penstock::cli
