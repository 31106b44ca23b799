#pragma once

// URLs as people may see them. What is behind a '?' may be a signature or a token, and what is in front of an '@' a
// password, so messages, reports and names of samples show neither.

#include <string>
#include <string_view>

namespace penstock::core {

/// In place of a query that may be secret.
inline constexpr std::string_view kHiddenQuery = "?...";

/// A path or URL without what may be secret: of a query only parameters that are known to be harmless, no fragment, no
/// user name and no password. Keys of buckets keep a '?', which belongs to them. Paths of files stay as they are.
std::string shown_path(std::string_view path);

/// Whether a query, with its '?', has a signature in it, as the URLs have that stores sign.
bool has_signature(std::string_view query) noexcept;

/// A message whose URLs are shown so.
std::string without_secrets(std::string_view text);

}  // namespace penstock::core
