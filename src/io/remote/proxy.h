#pragma once

// Which proxy a request goes through, told for errors: libcurl decides it by the environment and does not say.
// Passwords of proxies are kept out of what is shown.

#include <optional>
#include <string>
#include <string_view>

namespace penstock::io::remote {

/// The proxy that a variable of the environment names.
struct Proxy {
  std::string variable = {};
  std::string shown = {};  ///< where it is, without user name and password
};

/// The one that libcurl asks for `url`; nothing where it asks the server itself.
std::optional<Proxy> proxy_for(std::string_view url);

/// The text without the user names and passwords of all proxies, which libcurl repeats where it cannot read them.
std::string without_proxy_secrets(std::string text);

}  // namespace penstock::io::remote
