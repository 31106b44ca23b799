#pragma once

#include <string>
#include <vector>

#include "cli/show/request.h"
#include "cli/tensor_files.h"

namespace penstock::cli {

/// Draws one picture of each file, or of each of the named tensors in it, beside each other in cells of one size, from
/// the first on as many as a sheet has. What cannot be drawn is told on standard error. Returns the exit code.
int show_files(const ShowOptions& options, const ChosenFiles& files, const std::vector<std::string>& names);

}  // namespace penstock::cli
