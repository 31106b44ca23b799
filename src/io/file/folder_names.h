#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace penstock::io {

/// The names of what is in a folder, in no order. Where it cannot be listed to its end, as when it goes meanwhile,
/// `error` says so, and the names are some of them.
std::vector<std::string> folder_names(const std::string& folder, std::error_code& error);
/// The same; the errors of the system, with the path of the folder.
std::vector<std::string> folder_names(const std::string& folder);

}  // namespace penstock::io
