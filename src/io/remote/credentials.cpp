// The chain of places that may hold keys, in the order in which Amazon's own tools look. Services are asked by
// key_service.h, which keeps what they give.

#include "io/remote/credentials.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "core/format.h"
#include "core/per_process.h"
#include "core/text.h"
#include "io/remote/json_text.h"
#include "io/remote/key_service.h"
#include "io/remote/location.h"
#include "io/remote/profile.h"
#include "io/remote/settings.h"
#include "io/remote/store.h"
#include "io/remote/xml.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

using Clock = KeptKeys::Clock;

using core::trimmed;

/// "2026-01-02T03:04:05Z"
std::optional<Clock::time_point> time_of(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  return Clock::from_time_t(::timegm(&parts));
}

FetchedKeys fetched_of(std::string id, std::string secret, std::string token, const std::string& ends,
                       std::string_view place) {
  if (id.empty() || secret.empty()) {
    throw Error(ErrorCode::kPermission, core::format("{} gave no keys; check the role of this machine", place));
  }
  return {{std::move(id), std::move(secret), std::move(token)}, time_of(ends)};
}

FetchedKeys from_json(const std::string& text, std::string_view place) {
  const auto get = [&](const char* name) { return json_text(text, name); };
  if (const std::string code = get("Code"); !code.empty() && code != "Success") {
    throw Error(ErrorCode::kPermission, core::format("{} gave no keys ({}: {}); check the role of this machine", place,
                                                     core::quoted(code), core::quoted(get("Message"))));
  }
  return fetched_of(get("AccessKeyId"), get("SecretAccessKey"), get("Token"), get("Expiration"), place);
}

std::optional<FetchedKeys> from_web_identity(bool waits) {
  const std::string role = variable("AWS_ROLE_ARN");
  if (variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty() || role.empty()) return std::nullopt;
  const std::string token = text_of_setting("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string region = first_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  const std::string endpoint =
      or_else(endpoint_of(variable("AWS_ENDPOINT_URL_STS"), "AWS_ENDPOINT_URL_STS"),
              region.empty() ? "https://sts.amazonaws.com" : core::format("https://sts.{}.amazonaws.com", region));
  HttpRequest request{.method = "POST", .url = endpoint + "/"};
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = query_text({{"Action", "AssumeRoleWithWebIdentity"},
                             {"Version", "2011-06-15"},
                             {"RoleArn", role},
                             {"RoleSessionName", or_else(variable("AWS_ROLE_SESSION_NAME"), "penstock")},
                             {"WebIdentityToken", token}});
  request.secrets = {token};
  if (!takes_secrets(request)) {
    throw Error(ErrorCode::kPermission,
                "AWS_ENDPOINT_URL_STS is asked by http, where others may read the token; name it by https", {endpoint});
  }
  // Half an answer may end behind the keys and in front of the token that belongs to them.
  const auto is_whole = [](const std::string& xml) { return trimmed(xml).ends_with("Response>"); };
  const std::string text =
      ask_service(request,
                  {.name = endpoint,
                   .settings = "AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, which may have ended",
                   .is_whole = is_whole},
                  waits);
  return fetched_of(xml_text(text, "AccessKeyId"), xml_text(text, "SecretAccessKey"), xml_text(text, "SessionToken"),
                    xml_text(text, "Expiration"), "the token service");
}

/// Keys may be asked for without TLS only of this machine and of what containers are given.
bool may_be_asked(const std::string& url) {
  const std::string_view host = host_of(url);
  return is_private(url) || host == "169.254.170.2" || host == "169.254.170.23" || host == "[fd00:ec2::23]";
}

std::optional<FetchedKeys> from_container(bool waits) {
  const std::string relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string_view setting =
      relative.empty() ? "AWS_CONTAINER_CREDENTIALS_FULL_URI" : "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
  const std::string url =
      relative.empty() ? variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") : "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  if (!may_be_asked(url)) {
    throw Error(ErrorCode::kPermission,
                core::format("{} names another host, and not by https; keys are asked for by https there", setting));
  }
  HttpRequest request{.url = url, .past_proxies = true};
  const std::string of_file = text_of_setting("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const std::string token = of_file.empty() ? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN") : of_file;
  if (!token.empty()) {
    require_line(token, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    request.headers.push_back("Authorization: " + token);
    request.secrets = {token};
  }
  const std::string text = ask_service(request,
                                       {.name = url,
                                        .settings = "AWS_CONTAINER_AUTHORIZATION_TOKEN and the container's role",
                                        .is_whole = is_json_object},
                                       waits);
  return from_json(text, "the container's service");
}

bool has_text(const std::string& text) { return !trimmed(text).empty(); }

/// What a token or a role's name is, and a page of somebody else's is not.
bool is_word(std::string_view text) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '<' && c != '>'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_plain);
}

std::optional<FetchedKeys> from_instance(bool waits, std::string& why_none) {
  if (is_on("AWS_EC2_METADATA_DISABLED")) {
    why_none = "AWS_EC2_METADATA_DISABLED is true";
    return std::nullopt;
  }
  constexpr const char* kPlace = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
  const std::string base = or_else(endpoint_of(variable(kPlace), kPlace), "http://169.254.169.254");
  HttpRequest session{.method = "PUT", .url = base + "/latest/api/token", .past_proxies = true};
  session.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  KeyService service{
      .name = base, .settings = "AWS_EC2_METADATA_DISABLED and the role of this machine", .is_whole = has_text};
  const std::string token(trimmed(ask_metadata(session, service, waits, why_none).value_or("")));
  if (!token.empty() && !is_word(token)) why_none = "the machine's metadata service makes no sense";
  if (token.empty() || !why_none.empty()) return std::nullopt;
  const auto get = [&](const std::string& path, bool (*is_whole)(const std::string&)) {
    HttpRequest request{.url = base + path, .past_proxies = true};
    request.headers = {"X-aws-ec2-metadata-token: " + token};
    request.secrets = {token};
    service.is_whole = is_whole;
    return ask_metadata(request, service, waits, why_none).value_or("");
  };
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  const std::string list = get(roles, nullptr);
  const std::string role(trimmed(std::string_view(list).substr(0, list.find('\n'))));
  if (!is_word(role)) {
    if (why_none.empty()) {
      why_none = role.empty() ? "this machine has no role" : "the machine's metadata service makes no sense";
    }
    return std::nullopt;
  }
  const std::string text = get(roles + percent_encoded(role, false), is_json_object);
  if (!why_none.empty()) return std::nullopt;
  return from_json(text, "the instance's metadata");
}

/// Variables that say which service is asked.
constexpr auto kServices = std::to_array<const char*>(
    {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
     "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT"});

KeptKeys& kept() {
  static constinit core::PerProcess<KeptKeys> one;  // a service is asked under its lock
  return one.get();
}

std::optional<FetchedKeys> fetch(bool waits, std::string& why_none) {
  std::optional<FetchedKeys> found = from_web_identity(waits);
  if (!found) found = from_container(waits);
  return found ? found : from_instance(waits, why_none);
}

/// Ways to keys that a profile may name and that are not followed here.
constexpr auto kOtherWays = std::to_array<const char*>(
    {"role_arn", "credential_process", "sso_session", "sso_start_url", "web_identity_token_file", "login_session"});

/// The way that Amazon's tools would go; empty where the profile names none.
std::string other_way() {
  for (const char* const way : kOtherWays) {
    if (profile_setting(way).empty()) continue;
    return core::format(
        "the profile {} has {}, which Penstock does not follow: put the keys that it gives into AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (`aws configure export-credentials --format env` prints them)",
        core::quoted(profile_name()), way);
  }
  return {};
}

/// What the profile has instead of keys.
std::string without_keys() {
  const std::string way = other_way();
  return core::format("{}{}", way.empty() ? core::format("the profile {} has none", core::quoted(profile_name())) : way,
                      unread_profiles());
}

Keys keys_of_profile() {
  Keys out{profile_setting("aws_access_key_id"), profile_setting("aws_secret_access_key"),
           profile_setting("aws_session_token")};
  if (out.id.empty() == out.secret.empty()) return out;
  throw Error(ErrorCode::kPermission,
              core::format("the profile {} has one of aws_access_key_id and aws_secret_access_key and not the other; "
                           "it must have both or none",
                           core::quoted(profile_name())));
}

}  // namespace

Keys keys_of_variables(const char* id, const char* secret) {
  Keys out{variable(id), variable(secret)};
  if (out.id.empty() == out.secret.empty()) return out;
  throw Error(ErrorCode::kPermission,
              core::format("one of {} and {} is set and the other is not; set both or none", id, secret));
}

FoundKeys aws_keys() {
  if (is_on("PENSTOCK_S3_ANONYMOUS")) return {.remark = "PENSTOCK_S3_ANONYMOUS is set"};
  FoundKeys out{.keys = keys_of_variables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")};
  if (!out.keys.id.empty()) {
    out.keys.token = variable("AWS_SESSION_TOKEN");
    return out;
  }
  out.keys = keys_of_profile();
  std::string why_none;
  if (out.keys.id.empty()) out.keys = kept().get(kServices, fetch, why_none);
  out.remark = !out.keys.id.empty() ? other_way()
                                    : core::format("there are no keys: AWS_ACCESS_KEY_ID is not set, {}, and {}",
                                                   without_keys(), why_none);
  return out;
}

bool forget_aws_keys() { return kept().forget(); }

}  // namespace penstock::io::remote
