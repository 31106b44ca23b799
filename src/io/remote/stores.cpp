// The table of kinds of stores, and servers that are none: those of http(s) and Hugging Face, whose URLs are asked for
// as they are, with a bearer token for the host that it belongs to.

#include <algorithm>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/azure_store.h"
#include "io/remote/s3_store.h"
#include "io/remote/settings.h"
#include "io/remote/small_file.h"
#include "io/remote/store.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// The one that `hf auth login` keeps, unless it is not to be sent unasked.
std::string hf_token() {
  if (std::string token = variable("HF_TOKEN"); !token.empty()) return token;
  if (is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
  std::string file = path_variable("HF_TOKEN_PATH");
  if (file.empty()) {
    std::string folder = path_variable("HF_HOME");
    if (folder.empty()) folder = with_home("~/.cache/huggingface");
    if (folder.empty()) return {};
    file = folder + "/token";
  }
  const std::string text = text_of(file).value_or("");
  const std::size_t begin = std::min(text.size(), text.find_first_not_of(" \t\r\n"));
  return text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
}

/// A token for plain URLs is for one host, which has to be named: it would go to strangers otherwise.
void add_http_token(HttpRequest& request) {
  const std::string host = variable("PENSTOCK_HTTP_TOKEN_HOST");
  if (host.find_first_of("/?#@*, \t") != std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                "the setting PENSTOCK_HTTP_TOKEN_HOST must be one host as URLs have it, HOST or HOST:PORT");
  }
  const std::string token = variable("PENSTOCK_HTTP_TOKEN");
  if (token.empty()) return;
  if (core::lower(authority_of(request.url)) == core::lower(host)) {
    return add_bearer(token, "PENSTOCK_HTTP_TOKEN", request);
  }
  request.unsigned_because =
      host.empty()
          ? "no token was sent, because PENSTOCK_HTTP_TOKEN goes to the host in PENSTOCK_HTTP_TOKEN_HOST alone, "
            "which is not set"
          : core::format("no token was sent, because PENSTOCK_HTTP_TOKEN_HOST is {}, and the URL's is {}",
                         core::quoted(host), core::quoted(authority_of(request.url)));
}

void add_token(const Location& location, const Ask&, HttpRequest& request) {
  request.url = location.url;
  hide_query(request);
  if (location.kind == Kind::kHttp) return add_http_token(request);
  const std::string token = hf_token();
  if (!token.empty()) return add_bearer(token, "HF_TOKEN", request);
  if (!variable("HF_TOKEN_PATH").empty()) {
    request.unsigned_because = "no token was sent, because HF_TOKEN_PATH names a file without one";
  }
}

std::string own_url(const Location& location) { return location.url; }

constexpr Store kServer{.sign = add_token, .identity = own_url};

}  // namespace

const Store& store_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::kS3:
      return kS3Store;
    case Kind::kGs:
      return kGsStore;
    case Kind::kAz:
      return kAzureStore;
    case Kind::kHttp:
    case Kind::kHf:
      break;
  }
  return kServer;
}

bool takes_secrets(HttpRequest& request) {
  if (!is_private(request.url)) return false;
  if (scheme_of(request.url) == "http") request.past_proxies = true;
  return true;
}

void add_bearer(const std::string& token, std::string_view name, HttpRequest& request) {
  if (token.empty()) return;
  require_line(token, name);
  if (!takes_secrets(request)) {
    request.unsigned_because =
        core::format("no token was sent, because the URL is not https and others may listen; {} goes by https", name);
    return;
  }
  request.headers.push_back("Authorization: Bearer " + token);
  request.secrets.push_back(token);
}

HttpRequest request_for(const Location& location, const Ask& ask) {
  HttpRequest request{
      .method = std::string(ask.method), .headers = ask.headers, .body = ask.body, .payload = ask.payload};
  for (const auto& [name, value] : ask.signed_headers) request.headers.push_back(core::format("{}: {}", name, value));
  store_of(location.kind).sign(location, ask, request);
  return request;
}

std::string identity(const Location& location) { return store_of(location.kind).identity(location); }

void address(Exchange& exchange, const Location& location) {
  exchange.name = location.shown;
  exchange.values = location.values;
  exchange.bucket = location.bucket;
  exchange.terms = store_of(location.kind).terms;
}

}  // namespace penstock::io::remote
