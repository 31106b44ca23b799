#pragma once

// Small JSON that is made before it is printed.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace penstock::cli {

/// Keeps its members in the order in which they were put in.
using Json = nlohmann::ordered_json;

/// Puts a member that has a new key behind the others. `object[key]` looks at each of them first, so that objects of
/// many names, which files have, would take a time that grows with their square.
inline void add_member(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

}  // namespace penstock::cli
