// Azure's stores: where a container is served, and what proves who asks.
//
//   az://CONTAINER/BLOB   https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB, or ENDPOINT/CONTAINER/BLOB
//   abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB   the same blob; ACCOUNT goes before that of variables
//
// The account's key signs each request; a shared access signature is a query that is added to it; a token is a header.

#include "io/remote/azure_store.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/azure_account.h"
#include "io/remote/azure_credentials.h"
#include "io/remote/azure_list.h"
#include "io/remote/azure_object.h"
#include "io/remote/azure_signature.h"
#include "io/remote/base64.h"
#include "io/remote/settings.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// The newest that Azure's emulators and older clouds know as well. Names that XML cannot hold are coded since 2021-02.
constexpr std::string_view kVersion = "2021-12-02";

/// "Range: bytes=0-9" as name and value.
std::pair<std::string, std::string> taken_apart(std::string_view header) {
  const std::size_t colon = std::min(header.size(), header.find(':'));
  return {core::lower(header.substr(0, colon)),
          std::string(core::trimmed(header.substr(std::min(header.size(), colon + 1))))};
}

void sign_by_key(const AzureAccount& account, const Ask& ask, std::string_view path, HttpRequest& request) {
  const std::optional<std::vector<std::uint8_t>> key = base64_bytes(core::trimmed(account.key));
  if (!key) {
    throw Error(
        ErrorCode::kPermission,
        "the account's key is no Base64, so that part of it is missing; copy AZURE_STORAGE_KEY, or AccountKey of "
        "the connection string, anew");
  }
  SharedKeyRequest text{.method = ask.method, .account = account.name, .path = path, .query = ask.query};
  for (const std::string& header : request.headers) text.headers.push_back(taken_apart(header));
  text.body_bytes = request.payload.empty() ? request.body.size() : request.payload.size();
  request.headers.push_back("Authorization: " + shared_key(text, *key));
  request.secrets = {account.key};
}

/// What libcurl and a server may show of it: it is coded, or not.
void add_signature(const std::string& sas, HttpRequest& request) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '#'; };
  if (!std::all_of(sas.begin(), sas.end(), is_plain)) {
    throw Error(ErrorCode::kInvalidArgument,
                "AZURE_STORAGE_SAS_TOKEN has characters that no query has; copy it as Azure shows it, sv=...&sig=...");
  }
  if (!takes_secrets(request)) {
    request.unsigned_because =
        "no signature was sent, because the URL is not https and others may listen; AZURE_STORAGE_SAS_TOKEN goes by "
        "https";
    return;
  }
  request.url += (request.url.find('?') == std::string::npos ? "?" : "&") + sas;
  request.secrets = {sas, url_decoded(sas)};
  hide_query(request);
}

void sign_by_token(HttpRequest& request) {
  if (const std::string token = variable("AZURE_STORAGE_TOKEN"); !token.empty()) {
    return add_bearer(token, "AZURE_STORAGE_TOKEN", request);
  }
  std::string why_none;
  const std::string token = azure_token(why_none);
  if (!token.empty()) return add_bearer(token, "the token of this machine's identity", request);
  request.unsigned_because = core::format("the request was unsigned, because {}", why_none);
}

void sign_for_azure(const Location& location, const Ask& ask, HttpRequest& request) {
  const AzureAccount account = azure_account(location.endpoint);
  const std::string whole = core::format("{}/{}{}{}", account.endpoint, location.bucket,
                                         location.key.empty() ? "" : "/", percent_encoded(location.key, true));
  request.url = whole;
  if (!ask.query.empty()) request.url += "?" + query_text(ask.query);
  request.headers.push_back("x-ms-date: " + http_date(std::time(nullptr)));
  request.headers.push_back(core::format("x-ms-version: {}", kVersion));
  if (is_on("PENSTOCK_AZ_ANONYMOUS")) {
    request.unsigned_because = "the request was unsigned, because PENSTOCK_AZ_ANONYMOUS is set";
    return;
  }
  if (!account.key.empty()) {
    const std::string_view path =
        std::string_view(whole).substr(scheme_of(whole).size() + 3 + authority_of(whole).size());
    return sign_by_key(account, ask, path, request);
  }
  if (!account.sas.empty()) return add_signature(account.sas, request);
  sign_by_token(request);
}

/// A signature and a token change; what they lead to is the same.
std::string identity_for_azure(const Location& location) {
  return core::format("az\n{}\n{}\n{}", azure_account(location.endpoint).endpoint, location.bucket, location.key);
}

}  // namespace

const Store kAzureStore{.sign = sign_for_azure,
                        .identity = identity_for_azure,
                        .terms = {.renew_keys = forget_azure_token,
                                  .keys = "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or the identity",
                                  .endpoint = "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_BLOB_ENDPOINT"},
                        .listing = &kAzureListing,
                        .writing = &kAzureWriting};

}  // namespace penstock::io::remote
