#pragma once

// What `diff` and `report` share: options of a comparison, and its progress. inspect/comparison.h compares.

#include <string>
#include <vector>

#include "archive/inspect/comparison.h"
#include "penstock/load.h"

namespace penstock::cli {

struct Arguments;

/// --rtol, --atol, --nan-differs and --any-dtype; `how` has to live as long as `arguments`.
void take_comparison(Arguments& arguments, archive::CompareOptions& how);

/// archive::compare, with progress on a terminal.
archive::Comparison compare_shown(const Archive& a, const Archive& b, const archive::CompareOptions& how);

/// Keys of the metadata that users write, of which the two files have different texts.
std::vector<std::string> different_metadata(const Archive& a, const Archive& b);

}  // namespace penstock::cli
