#pragma once

// Small JSON that is made before it is printed.

#include <nlohmann/json.hpp>

namespace penstock::cli {

/// Keeps its members in the order in which they were put in.
using Json = nlohmann::ordered_json;

}  // namespace penstock::cli
