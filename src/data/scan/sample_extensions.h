#pragma once

#include <string_view>
#include <vector>

namespace penstock::data {

/// The extensions of formats that hold samples, each once; an index of shards is not a sample beside its shards.
const std::vector<std::string_view>& sample_extensions();

/// Whether a file of this name is taken for a sample: not hidden, with one of these extensions in any case.
bool is_sample_name(std::string_view name);

}  // namespace penstock::data
