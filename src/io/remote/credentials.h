#pragma once

#include <map>
#include <string>
#include <string_view>

#include "io/remote/signature.h"

namespace penstock::io::remote {

/// Keys for Amazon's stores and those that speak like them: environment, shared profile, web identity, container,
/// instance metadata; none where there are none. Those that end are fetched anew before they do. kPermission, kIo when
/// a place that should have them gives none. May wait for a service. Thread-safe.
Keys aws_keys();
/// After a store refused them: those that a service gave are forgotten. Whether others may come.
bool forget_aws_keys();

/// What the profile in use says of `name` ("region", "endpoint_url"); empty where it says nothing.
std::string profile_setting(std::string_view name);

/// Sections and their entries: "[profile x]", "name = value". Lines that are neither are stepped over.
using Sections = std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>>;
Sections read_profiles(std::string_view text);

}  // namespace penstock::io::remote
