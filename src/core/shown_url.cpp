#include "core/shown_url.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/ascii.h"
#include "core/url_scheme.h"

namespace penstock::core {
namespace {

constexpr auto kHarmless = std::to_array<std::string_view>(
    {"versionId", "generation", "alt", "download", "raw", "ref", "rev", "version", "format"});

/// What begins a parameter that signs.
constexpr auto kSignatures = std::to_array<std::string_view>({"sig=", "X-Amz-Signature=", "X-Goog-Signature="});

/// The same, and what proves who asks: of web addresses, and no name that an object has.
constexpr auto kProofs = std::to_array<std::string_view>({"sig=", "X-Amz-Signature=", "X-Goog-Signature=", "Signature=",
                                                          "X-Amz-Security-Token=", "token=", "access_token="});

/// Whether one of these begins a parameter of the query.
bool has_one_of(std::span<const std::string_view> names, std::string_view query) noexcept {
  for (const std::string_view name : names) {
    for (std::size_t at = query.find(name); at != query.npos; at = query.find(name, at + 1)) {
      if (at > 0 && (query[at - 1] == '?' || query[at - 1] == '&')) return true;
    }
  }
  return false;
}

bool is_of_scheme(char c) noexcept { return is_letter_or_digit(c) || c == '+' || c == '-' || c == '.'; }

/// A URL taken apart; `scheme` is empty for what is none.
struct Parts {
  std::string scheme = {};
  std::string_view front = {};  ///< the scheme and what is between it and the host
  std::string_view rest = {};
};

Parts parts_of(std::string_view url) {
  const auto end = static_cast<std::size_t>(
      std::find_if_not(url.begin(), url.end(), [](char c) { return is_of_scheme(c); }) - url.begin());
  if (end == 0 || !is_letter(url.front())) return {};
  std::string scheme = lower(url.substr(0, end));
  const std::string_view behind = url.substr(end);
  // Functions that normalise paths make "https:/" of "https://".
  const bool is_normalised = behind.starts_with(":/") && (scheme == "http" || scheme == "https");
  if (!behind.starts_with("://") && !is_normalised) return {};
  const std::size_t front = end + (behind.starts_with("://") ? 3 : 2);
  return {std::move(scheme), url.substr(0, front), url.substr(front)};
}

bool is_harmless(std::string_view query) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    if (std::find(kHarmless.begin(), kHarmless.end(), one.substr(0, one.find('='))) == kHarmless.end()) return false;
    query.remove_prefix(std::min(query.size(), one.size() + 1));
  }
  return true;
}

/// Whether a '?' or '#' belongs to the name of an object. A signature behind it belongs to nobody's name: somebody has
/// put it there.
bool has_key(const Parts& url) {
  const UrlScheme* const scheme = url_scheme(url.scheme + "://");
  if (scheme == nullptr || scheme->kind == UrlKind::kHttp) return false;
  const std::string_view query = url.rest.substr(std::min(url.rest.size(), url.rest.find('?')));
  return !has_one_of(kProofs, query);
}

/// Whether what is behind a ':' is no port, so that it is a password, which may have a '/' in it.
bool has_password(std::string_view authority) {
  const std::size_t colon = authority.find(':');
  if (colon == std::string_view::npos || authority.starts_with('[')) return false;
  const std::string_view port = authority.substr(colon + 1);
  return !std::all_of(port.begin(), port.end(), is_digit);
}

/// Whether what is in front of '@' is the name of a container.
bool has_container(const Parts& url) {
  const UrlScheme* const scheme = url_scheme(url.scheme + "://");
  const std::string_view authority = url.rest.substr(0, url.rest.find('/'));
  return scheme != nullptr && scheme->has_account && authority.find(':') == std::string_view::npos &&
         std::count(authority.begin(), authority.end(), '@') == 1;
}

/// Takes user name and password out of what is behind "://"; whether there were any.
bool drop_user(std::string_view& rest, std::string_view ends) {
  const std::string_view authority = rest.substr(0, rest.find_first_of(ends));
  const bool is_hidden = has_password(authority);
  const std::size_t at = is_hidden ? rest.rfind('@') : authority.rfind('@');
  if (at == std::string_view::npos && !is_hidden) return false;
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at);
  return true;
}

}  // namespace

bool has_signature(std::string_view query) noexcept { return has_one_of(kSignatures, query); }

std::string shown_path(std::string_view path) {
  Parts url = parts_of(path);
  if (url.scheme.empty()) return std::string(path);
  const bool is_key = has_key(url);
  std::string out(url.front);
  if (!has_container(url) && drop_user(url.rest, is_key ? "/" : "/?#")) out += "...";
  if (is_key) return out.append(url.rest);
  url.rest = url.rest.substr(0, url.rest.find('#'));
  const std::size_t question = url.rest.find('?');
  if (question == std::string_view::npos || is_harmless(url.rest.substr(question + 1))) return out.append(url.rest);
  return out.append(url.rest.substr(0, question)).append(kHiddenQuery);
}

std::string without_secrets(std::string_view text) {
  std::string out;
  for (std::size_t colon = text.find(":/"); colon != std::string_view::npos; colon = text.find(":/")) {
    std::size_t begin = colon;
    while (begin > 0 && is_of_scheme(text[begin - 1])) --begin;
    while (begin < colon && !is_letter(text[begin])) ++begin;
    std::size_t end = std::min(text.size(), text.find_first_of(" \t\r\n", colon));
    // What ends a sentence, or quotes the URL, belongs to the message.
    constexpr std::string_view kAround = "'\",;:.)]}";
    while (end > colon + 2 && kAround.find(text[end - 1]) != std::string_view::npos) --end;
    out.append(text.substr(0, begin)).append(shown_path(text.substr(begin, end - begin)));
    text.remove_prefix(end);
  }
  return out.append(text);
}

}  // namespace penstock::core
