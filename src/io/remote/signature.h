#pragma once

// AWS Signature Version 4: which text of a request is signed, and how. Pure; store.h calls it for each try.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::io::remote {

/// What signs requests. Without an id nothing is signed. Never shown to anyone.
struct Keys {
  std::string id = {};
  std::string secret = {};
  std::string token = {};  ///< of temporary keys; Azure's services give nothing else

  bool empty() const noexcept { return id.empty() && token.empty(); }
};

/// Names and values as they are, not encoded.
using Query = std::vector<std::pair<std::string, std::string>>;

/// What of a request is signed.
struct Signable {
  std::string_view method = "GET";
  std::string_view path = "/";  ///< percent-encoded, once
  Query query = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in lower case, `host` among them
  std::string_view payload_hash;
};

/// Where and when a signature is good.
struct SigningScope {
  std::string_view region;
  std::string_view service = "s3";
  std::string_view timestamp;  ///< "20150830T123600Z"
};

/// The hash of a request without a body.
inline constexpr std::string_view kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The value of the header `Authorization` by AWS Signature Version 4.
std::string authorization(const Signable& request, const Keys& keys, const SigningScope& scope);

/// Everything but letters, digits and "-._~" as %XX; '/' stays where `keep_slash`.
std::string percent_encoded(std::string_view text, bool keep_slash);
/// The other way round; a '%' that begins no %XX stays. `is_form`: '+' is a space.
std::string url_decoded(std::string_view text, bool is_form = true);
/// "a=1&b=%20", ordered as signatures want it.
std::string query_text(const Query& query);

}  // namespace penstock::io::remote
