#pragma once

#include <string>
#include <vector>

namespace penstock::format {

/// Files that are parts of one thing say in their names how many there are: "model-00002-of-00006.safetensors", counted
/// from 1 or from 0. kNotFound names the first that is missing in `folder`, which has `names`. Other names are passed
/// over.
void require_all_parts(const std::vector<std::string>& names, const std::string& folder);

}  // namespace penstock::format
