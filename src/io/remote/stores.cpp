// The table of kinds of stores, and servers that are none: those of http(s) and Hugging Face, whose URLs are asked for
// as they are, with a bearer token for the host that it belongs to.

#include <algorithm>

#include "core/format.h"
#include "io/remote/azure_store.h"
#include "io/remote/s3_store.h"
#include "io/remote/settings.h"
#include "io/remote/small_file.h"
#include "io/remote/store.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// The one that `hf auth login` keeps, unless it is not to be sent unasked.
std::string hf_token() {
  if (std::string token = variable("HF_TOKEN"); !token.empty()) return token;
  const std::string implicit = variable("HF_HUB_DISABLE_IMPLICIT_TOKEN");
  if (!implicit.empty() && implicit != "0" && implicit != "false") return {};
  std::string file = path_variable("HF_TOKEN_PATH");
  if (file.empty()) {
    const std::string folder = path_variable("HF_HOME");
    file = (folder.empty() ? with_home("~/.cache/huggingface") : folder) + "/token";
  }
  const std::string text = text_of(file).value_or("");
  const std::size_t begin = std::min(text.size(), text.find_first_not_of(" \t\r\n"));
  return text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
}

/// A token for plain URLs is for one host, which has to be named: it would go to strangers otherwise.
void add_token(const Location& location, const Ask&, HttpRequest& request) {
  request.url = location.url;
  if (location.kind == Kind::kHf) {
    add_bearer(hf_token(), "HF_TOKEN", request);
  } else if (const std::string host = variable("PENSTOCK_HTTP_TOKEN_HOST");
             !host.empty() && authority_of(location.url) == host) {
    add_bearer(variable("PENSTOCK_HTTP_TOKEN"), "PENSTOCK_HTTP_TOKEN", request);
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

void add_bearer(const std::string& token, std::string_view name, HttpRequest& request) {
  if (token.empty()) return;
  if (token.find_first_of("\r\n") != std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument, core::format("{} has a line break in it", name));
  }
  if (!is_private(request.url)) {
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
