#pragma once

// URLs taken apart, and names put onto them. The one parser of them: requests, errors and signatures use its result, so
// that what is asked for and what is shown agree.

#include <optional>
#include <string>
#include <string_view>

#include "core/url_scheme.h"
#include "io/remote/values.h"

namespace penstock::io::remote {

using Kind = core::UrlKind;

/// A URL of one of our schemes, taken apart.
struct Location {
  Kind kind = Kind::kHttp;
  std::string url = {};       ///< of kHttp and kHf: what is asked for, percent-encoded
  std::string bucket = {};    ///< of a store; empty for the others
  std::string endpoint = {};  ///< of a store whose URL names the account: "https://NAME.blob.core.windows.net"
  std::string key = {};       ///< as it is, not encoded
  std::string shown = {};     ///< the location as errors name it: without what may be secret in it
  bool has_secret = false;    ///< what is shown does not lead there
  ValuesPtr values = {};      ///< options of its requests

  bool in_bucket() const noexcept { return !bucket.empty(); }
};

/// kInvalidArgument for one that cannot be right.
Location parse(std::string_view url);
/// The same of a URL of a bucket; nothing of a path and of other URLs.
std::optional<Location> parse_in_bucket(std::string_view location);

/// An account's name is part of a host's name.
bool is_azure_account(std::string_view name) noexcept;

/// The object called `name` beside that at `shown`, which is a location as errors name it: `name` has no '/'.
std::string sibling(std::string_view shown, std::string_view name);

/// The object called `name` in the folder that `url` names; empty where the URL has a secret in its query, which leads
/// to one object alone. A bucket is a folder too.
std::string in_folder(std::string_view url, std::string_view name);

/// The host and port of an http(s) URL, as the header `Host` has it.
std::string_view authority_of(std::string_view url) noexcept;
/// Its host alone, as it is written: "h", "127.0.0.1", "[::1]"; all of the authority where that is no host and port.
std::string_view host_of(std::string_view url) noexcept;
/// The URL of a server that a setting names, without '/' at its end; empty stays empty. kInvalidArgument for one that
/// is no URL of http or https, or has a user or a query in it. Neither may be shown.
std::string endpoint_of(std::string url, std::string_view setting);
/// Whether what is sent to the URL reaches nobody on the way: it is https, or a server of this machine.
bool is_private(std::string_view url) noexcept;
/// The scheme in front of "://".
std::string_view scheme_of(std::string_view url) noexcept;
/// Where `target`, which a redirect names, is, seen from `url`; empty where it is no URL of http or https.
std::string resolved(std::string_view url, std::string_view target);

}  // namespace penstock::io::remote
