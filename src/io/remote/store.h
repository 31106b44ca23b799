#pragma once

// Makes the request for a location: its host, headers, token or signature, as each kind of store wants them. All that
// differs between stores when they are asked is here; what differs in their answers is in store_error.h and judge.h.

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
  std::vector<std::string> headers = {};  ///< "Range: bytes=0-9"; not signed
  Query query = {};
  /// Names in lower case and values, signed where anything is: stores want that of what begins with "x-amz-".
  std::vector<std::pair<std::string, std::string>> signed_headers = {};
  std::string body = {};  ///< short, as XML is; signed
  std::span<const std::byte> payload =
      {};  ///< of an object; not copied and not signed, which TLS and checksums replace
};

/// The request, signed or with its token where there is one. Made anew for each try, because signatures age.
/// kPermission for keys that are half there; as aws_keys.
HttpRequest request_for(const Location& location, const Ask& ask);

/// Where the object is, as nothing else is: its host and path, the bucket's region left out. May hold a secret.
std::string identity(const Location& location);

/// Names the location in the errors of an exchange, and says what may make a try succeed after its store refused one.
void address(Exchange& exchange, const Location& location);

}  // namespace penstock::io::remote
