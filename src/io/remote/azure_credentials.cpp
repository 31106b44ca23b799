// Services give tokens for an hour or a day; key_service.h keeps them. Which service is asked follows from variables,
// as in Azure's own tools:
//
//   AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE   Entra, by https
//   IDENTITY_ENDPOINT, IDENTITY_HEADER                                                       the container's service
//   none of these                                                                            the machine's metadata

#include "io/remote/azure_credentials.h"

#include <array>
#include <optional>

#include "core/format.h"
#include "core/parse_number.h"
#include "core/per_process.h"
#include "io/remote/json_text.h"
#include "io/remote/key_service.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"
#include "io/remote/store.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

using Clock = KeptKeys::Clock;

constexpr std::string_view kResource = "https://storage.azure.com/";

/// Variables that say which service is asked, and for whom.
constexpr auto kPlaces = std::to_array<const char*>({"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET",
                                                     "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
                                                     "IDENTITY_ENDPOINT", "AZURE_POD_IDENTITY_AUTHORITY_HOST"});

KeptKeys& kept_tokens() {
  static constinit core::PerProcess<KeptKeys> one;  // a service is asked under its lock
  return one.get();
}

std::optional<std::int64_t> seconds_of(const std::string& text) {
  const auto seconds = core::parse_number<std::int64_t>(text);
  return seconds && *seconds >= 0 && *seconds < 1LL << 40 ? seconds : std::nullopt;
}

/// "expires_on" is when it ends, "expires_in" how long it is good; services give one or both, as text or number.
FetchedKeys token_from(const std::string& json, std::string_view place) {
  FetchedKeys out{.keys = {.token = json_text(json, "access_token")}};
  if (out.keys.token.empty() || out.keys.token.find_first_of("\r\n") != std::string::npos) {
    throw Error(ErrorCode::kPermission,
                core::format("{} gave no token; check the identity of this machine and AZURE_CLIENT_ID", place));
  }
  if (const auto until = seconds_of(json_text(json, "expires_on"))) {
    out.ends = Clock::from_time_t(static_cast<std::time_t>(*until));
  } else if (const auto length = seconds_of(json_text(json, "expires_in"))) {
    out.ends = Clock::now() + std::chrono::seconds(*length);
  }
  return out;
}

/// What proves to Entra who asks: a secret, or a token of the cluster, which is read anew because it is replaced.
Query proof_of_client() {
  if (std::string secret = variable("AZURE_CLIENT_SECRET"); !secret.empty()) return {{"client_secret", secret}};
  const std::string token = text_of_setting("AZURE_FEDERATED_TOKEN_FILE");
  if (token.empty()) return {};
  return {{"client_assertion", token},
          {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}};
}

std::optional<FetchedKeys> from_entra(bool waits) {
  const std::string tenant = variable("AZURE_TENANT_ID");
  const std::string client = variable("AZURE_CLIENT_ID");
  if (tenant.empty() || client.empty()) return std::nullopt;
  Query form = proof_of_client();
  if (form.empty()) return std::nullopt;
  const std::string host = or_else(endpoint_of(variable("AZURE_AUTHORITY_HOST"), "AZURE_AUTHORITY_HOST"),
                                   "https://login.microsoftonline.com");
  HttpRequest request{.method = "POST",
                      .url = core::format("{}/{}/oauth2/v2.0/token", host, percent_encoded(tenant, false))};
  if (!takes_secrets(request)) {
    throw Error(ErrorCode::kPermission,
                "AZURE_AUTHORITY_HOST is asked by http, where others may read the token; name it by https", {host});
  }
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.secrets = {form.front().second};
  form.emplace_back("client_id", client);
  form.emplace_back("grant_type", "client_credentials");
  form.emplace_back("scope", core::format("{}.default", kResource));
  request.body = query_text(form);
  constexpr std::string_view kAsker = "AZURE_TENANT_ID, AZURE_CLIENT_ID, and its secret or AZURE_FEDERATED_TOKEN_FILE";
  const KeyService service{.name = host, .settings = kAsker, .is_whole = is_json_object};
  return token_from(ask_service(request, service, waits), "the token service");
}

/// What a managed identity is asked for.
std::string identity_query(std::string_view version) {
  Query query = {{"api-version", std::string(version)}, {"resource", std::string(kResource)}};
  if (const std::string client = variable("AZURE_CLIENT_ID"); !client.empty()) query.emplace_back("client_id", client);
  return query_text(query);
}

/// A service of this machine, by an address that leads nowhere else.
bool is_near(const std::string& url) {
  const std::string_view host = host_of(url);
  return is_private(url) || (host.starts_with("169.254.") && host.find_first_not_of("0123456789.") == host.npos);
}

std::optional<FetchedKeys> from_container_identity(bool waits) {
  const std::string endpoint = variable("IDENTITY_ENDPOINT");
  const std::string proof = variable("IDENTITY_HEADER");
  if (endpoint.empty() || proof.empty()) return std::nullopt;
  require_line(proof, "IDENTITY_HEADER");
  if (!is_near(endpoint)) {
    throw Error(ErrorCode::kPermission,
                "IDENTITY_ENDPOINT names another host by http; tokens are asked for by https there", {endpoint});
  }
  const char joint = endpoint.find('?') == std::string::npos ? '?' : '&';
  HttpRequest request{.url = core::format("{}{}{}", endpoint, joint, identity_query("2019-08-01")),
                      .past_proxies = true};
  request.headers = {"X-IDENTITY-HEADER: " + proof};
  request.secrets = {proof};
  const KeyService service{
      .name = endpoint, .settings = "IDENTITY_HEADER and AZURE_CLIENT_ID", .is_whole = is_json_object};
  return token_from(ask_service(request, service, waits), "the container's service");
}

std::optional<FetchedKeys> from_machine(bool waits, std::string& why_none) {
  constexpr const char* kPlace = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
  const std::string base = or_else(endpoint_of(variable(kPlace), kPlace), "http://169.254.169.254");
  HttpRequest request{.url = core::format("{}/metadata/identity/oauth2/token?{}", base, identity_query("2018-02-01")),
                      .past_proxies = true};
  request.headers = {"Metadata: true"};
  const std::optional<std::string> json = ask_metadata(
      request,
      {.name = base, .settings = "AZURE_CLIENT_ID and the identity of this machine", .is_whole = is_json_object}, waits,
      why_none);
  return json ? std::optional(token_from(*json, "the machine's metadata service")) : std::nullopt;
}

std::optional<FetchedKeys> fetch_token(bool waits, std::string& why_none) {
  std::optional<FetchedKeys> found = from_entra(waits);
  if (!found) found = from_container_identity(waits);
  return found ? found : from_machine(waits, why_none);
}

}  // namespace

std::string azure_token(std::string& why_none) {
  const Keys keys = kept_tokens().get(kPlaces, fetch_token, why_none);
  if (keys.token.empty()) {
    why_none = core::format("there is no AZURE_STORAGE_KEY, no AZURE_STORAGE_SAS_TOKEN and no identity: {}", why_none);
  }
  return keys.token;
}

bool forget_azure_token() { return kept_tokens().forget(); }

}  // namespace penstock::io::remote
