#pragma once

#include <string>
#include <string_view>

namespace penstock::io {

/// The path that a location names: of a "file:" URL (RFC 8089) the one in it, percent-decoded; of others the location
/// as it is. A file URL has a '/' behind its colon: "file:x" is a file's name, as "s3:x" is. kUnsupported for a URL of
/// another host, kInvalidArgument for a '%' without two digits.
std::string local_path(std::string_view location);

}  // namespace penstock::io
