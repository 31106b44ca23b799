#pragma once

// What lies in a folder of this machine, where all names are wanted at once. The scans of datasets read folders in
// their own way (data/scan); names_in (io/locations.h) takes buckets too.

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
