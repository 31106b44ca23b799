#pragma once

// Azure's "Shared Key": which text of a request is signed, and how. Pure; azure_store.cpp calls it for each try.

#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/remote/signature.h"

namespace penstock::io::remote {

/// What of a request is signed.
struct SharedKeyRequest {
  std::string_view method = "GET";
  std::string_view account;
  std::string_view path = "/";                                    ///< of the URL, percent-encoded as it is sent
  Query query = {};                                               ///< names in lower case
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in lower case
  std::uint64_t body_bytes = 0;
};

/// The text that is signed.
std::string shared_key_text(const SharedKeyRequest& request);
/// The value of the header `Authorization`. `key` is the account's, out of its Base64.
std::string shared_key(const SharedKeyRequest& request, std::span<const std::uint8_t> key);

/// "Fri, 26 Jun 2015 23:39:12 GMT", whatever the program's language is.
std::string http_date(std::time_t time);

}  // namespace penstock::io::remote
