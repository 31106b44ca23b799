#pragma once

// Statistics of tensors as JSON, for `stats` and `report`.

#include <cstddef>
#include <string>
#include <vector>

#include "archive/inspect/statistics.h"
#include "cli/json/json.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Whether statistics say more of the tensor than its dtype.
bool has_numbers(const TensorEntry& entry);

/// archive::summarise of the tensors that are wanted, a flag for each, with progress on a terminal.
std::vector<archive::Statistics> summarise_shown(const Archive& archive, const std::vector<bool>& wanted);

/// The least or greatest value as JSON has it: of integers, with every digit.
std::string bound_text(const archive::Statistics& of, bool least);

/// The members zeros, denormals, nan, inf, negative_inf, finite, min, max, mean, std (null where nothing is finite) and
/// histogram, in at most `bins` intervals, of the object that is open.
void write_numbers(JsonWriter& out, const archive::Statistics& of, std::size_t bins);

}  // namespace penstock::cli
