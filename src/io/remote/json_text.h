#pragma once

#include <string>
#include <string_view>

namespace penstock::io::remote {

/// The text or whole number that a service's JSON object has under `name`; empty where there is none, and where it is
/// no such object. Never says what the answer was, which may hold secrets.
std::string json_text(std::string_view json, std::string_view name);
/// Whether it is one whole object.
bool is_json_object(const std::string& text);

}  // namespace penstock::io::remote
