#pragma once

#include <nlohmann/json.hpp>

namespace penstock::cli {

/// Keeps its members in the order in which they were put in.
using Json = nlohmann::ordered_json;

}  // namespace penstock::cli
