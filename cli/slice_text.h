#pragma once

#include <string_view>

#include "penstock/load.h"

namespace penstock::cli {

/// Narrows `tensor` by text in Python's notation, "0:4,:,2", "-1", "...,0", "::2". kInvalidArgument names the part that
/// is wrong; more parts than dimensions, steps below 1 and integers out of range are refused. Reads nothing.
LazyTensor apply_slice(LazyTensor tensor, std::string_view text);

}  // namespace penstock::cli
