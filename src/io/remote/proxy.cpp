#include "io/remote/proxy.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "core/shown_url.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"

namespace penstock::io::remote {
namespace {

/// HTTP_PROXY is not among them: in a CGI program a client sets it.
constexpr auto kVariables =
    std::to_array<const char*>({"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});

/// What stands in front of the host, such as "user:password"; a password may have any character in it. Also where no
/// host follows: what is behind a ':' and no port may be a password.
std::string_view user_of(std::string_view proxy) {
  const std::size_t scheme = proxy.find("://");
  if (scheme != std::string_view::npos) proxy.remove_prefix(scheme + 3);
  if (const std::size_t at = proxy.rfind('@'); at != std::string_view::npos) return proxy.substr(0, at);
  const std::string_view port = proxy.substr(std::min(proxy.size(), proxy.find_last_of(":]")));
  const bool is_address = port.find_first_not_of(":]0123456789/") == std::string_view::npos;
  return is_address ? std::string_view() : proxy;
}

std::string shown(const std::string& proxy) {
  const std::string_view user = user_of(proxy);
  if (user.empty()) return core::shown_path(proxy);
  std::string out = proxy;
  return out.replace(static_cast<std::size_t>(user.data() - proxy.data()), user.size(), "...");
}

std::string first_of(std::initializer_list<const char*> names, std::string& found) {
  for (const char* const name : names) {
    if (std::string value = variable(name); !value.empty()) {
      found = name;
      return value;
    }
  }
  return {};
}

/// By no_proxy, a list of hosts and of the ends of their names.
bool is_past_proxies(std::string_view host) {
  const std::string list = first_variable({"no_proxy", "NO_PROXY"});
  std::string_view rest = list;
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find_first_of(", "));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one == "*") return true;
    while (one.starts_with('.')) one.remove_prefix(1);
    if (one.empty() || !host.ends_with(one)) continue;
    if (host.size() == one.size() || host[host.size() - one.size() - 1] == '.') return true;
  }
  return false;
}

void hide(std::string_view secret, std::string& text) {
  constexpr std::size_t kLeast = 3;
  if (secret.size() < kLeast) return;
  for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3)) {
    text.replace(at, secret.size(), "...");
  }
}

}  // namespace

std::optional<Proxy> proxy_for(std::string_view url) {
  Proxy out;
  const std::string value = scheme_of(url) == "https"
                                ? first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}, out.variable)
                                : first_of({"http_proxy", "all_proxy", "ALL_PROXY"}, out.variable);
  if (value.empty() || is_past_proxies(host_of(url))) return std::nullopt;
  out.shown = shown(value);
  return out;
}

std::string without_proxy_secrets(std::string text) {
  for (const char* const name : kVariables) {
    const std::string value = variable(name);
    const std::string_view user = user_of(value);
    hide(user, text);
    // libcurl may have cut it where it took the host to be.
    hide(user.substr(std::min(user.size(), user.find(':') + 1)), text);
    for (std::string_view rest = user; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find_first_of(":/@?#"));
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      hide(part, text);
    }
  }
  return core::without_secrets(text);
}

}  // namespace penstock::io::remote
