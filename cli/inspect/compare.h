#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "archive/inspect/comparison.h"
#include "penstock/load.h"

namespace penstock::cli {

/// --rtol, --atol, --nan-differs and --any-dtype; `how` has to live as long as `app`.
void take_comparison(CLI::App& app, archive::CompareOptions& how);

/// archive::compare, with progress on a terminal.
archive::Comparison compare_shown(const Archive& a, const Archive& b, const archive::CompareOptions& how);

/// Keys of the metadata that users write, of which the two files have different texts.
std::vector<std::string> different_metadata(const Archive& a, const Archive& b);

}  // namespace penstock::cli
