#pragma once

// Files of settings and tokens, which a user may have left as anything.

#include <optional>
#include <string>

namespace penstock::io::remote {

/// The text of a file of settings, which has kilobytes; nothing of what is no file, or a larger one.
std::optional<std::string> text_of(const std::string& path);

}  // namespace penstock::io::remote
