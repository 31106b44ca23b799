#pragma once

// Makes the request for a location: its host, headers, token or signature, as each kind of store wants them. The table
// of kinds is in stores.cpp: one row has all that differs between stores when they are asked. What differs in their
// answers is in store_error.h and judge.h.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/remote/exchange.h"
#include "io/remote/location.h"
#include "io/remote/reactor.h"
#include "io/remote/signature.h"

namespace penstock::io::remote {

/// What is asked of a location. `key` and `query` matter in buckets.
struct Ask {
  std::string_view method = "GET";
  std::vector<std::string> headers = {};  ///< "Range: bytes=0-9"; Azure's stores alone want them signed
  Query query = {};
  /// Names in lower case and values, signed where anything is: stores want that of what begins with "x-amz-".
  std::vector<std::pair<std::string, std::string>> signed_headers = {};
  std::string body = {};  ///< short, as XML is; signed
  std::span<const std::byte> payload =
      {};  ///< of an object; not copied and not signed, which TLS and checksums replace
};

struct Listing;  // list_page.h
struct Writing;  // object_requests.h

/// What differs between kinds of stores. Each is described where the function of its name stands.
struct Store {
  /// Fills in the URL, and what proves who asks. `request` has method, headers and body.
  void (*sign)(const Location& location, const Ask& ask, HttpRequest& request);
  std::string (*identity)(const Location& location);
  StoreTerms terms = {};
  const Listing* listing = nullptr;  ///< null: cannot be listed
  const Writing* writing = nullptr;  ///< null: cannot be written
};

const Store& store_of(Kind kind) noexcept;

/// The request, signed or with its token where there is one. Made anew for each try, because signatures age.
/// kPermission for keys that are half there; as aws_keys.
HttpRequest request_for(const Location& location, const Ask& ask);

/// Where the object is, as nothing else is: its host and path, the bucket's region left out. May hold a secret.
std::string identity(const Location& location);

/// Whether a secret may go with the request: by https, or to this machine, where no proxy is to read it.
bool takes_secrets(HttpRequest& request);

/// Sends a token as `Authorization: Bearer`, where nobody listens on the way: it is as good as a password. `name` is
/// the setting that it comes from.
void add_bearer(const std::string& token, std::string_view name, HttpRequest& request);

/// Names the location in the errors of an exchange, and says what may make a try succeed after its store refused one.
void address(Exchange& exchange, const Location& location);

}  // namespace penstock::io::remote
