// The chain of places that may hold keys, in the order in which Amazon's own tools look. Services are asked by
// key_service.h, which keeps what they give.

#include "io/remote/credentials.h"

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
#include "io/remote/small_file.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

using Clock = KeptKeys::Clock;

using core::trimmed;

std::string either(std::string value, std::string otherwise) { return value.empty() ? otherwise : value; }

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
  return fetched_of(get("AccessKeyId"), get("SecretAccessKey"), get("Token"), get("Expiration"), place);
}

std::optional<FetchedKeys> from_web_identity(bool waits) {
  const std::string file = path_variable("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string role = variable("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  const std::optional<std::string> token = text_of(file);
  if (!token)
    throw Error(ErrorCode::kPermission, "AWS_WEB_IDENTITY_TOKEN_FILE names a file that cannot be read", {file});
  const std::string region = either(variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"));
  const std::string endpoint =
      either(variable("AWS_ENDPOINT_URL_STS"),
             region.empty() ? "https://sts.amazonaws.com" : core::format("https://sts.{}.amazonaws.com", region));
  HttpRequest request{.method = "POST", .url = endpoint + "/"};
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = query_text({{"Action", "AssumeRoleWithWebIdentity"},
                             {"Version", "2011-06-15"},
                             {"RoleArn", role},
                             {"RoleSessionName", either(variable("AWS_ROLE_SESSION_NAME"), "penstock")},
                             {"WebIdentityToken", std::string(trimmed(*token))}});
  request.secrets = {std::string(trimmed(*token))};
  if (!is_private(endpoint)) {
    throw Error(ErrorCode::kPermission,
                "AWS_ENDPOINT_URL_STS is asked by http, where others may read the token; name it by https", {endpoint});
  }
  const std::string text = ask_service(request, endpoint, waits);
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
  const std::string url =
      relative.empty() ? variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") : "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  if (!may_be_asked(url)) {
    throw Error(ErrorCode::kPermission,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names another host by http; keys are asked for by https there",
                {url});
  }
  HttpRequest request{.url = url, .past_proxies = true};
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = path_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    token = trimmed(text_of(file).value_or(""));
  }
  if (token.find_first_of("\r\n") != std::string::npos) token.clear();
  if (!token.empty()) {
    request.headers.push_back("Authorization: " + token);
    request.secrets = {token};
  }
  return from_json(ask_service(request, url, waits), "the container's service");
}

std::optional<FetchedKeys> from_instance(bool waits, std::string& why_none) {
  if (variable("AWS_EC2_METADATA_DISABLED") == "true") {
    why_none = "AWS_EC2_METADATA_DISABLED is true";
    return std::nullopt;
  }
  std::string base = either(variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254");
  while (base.ends_with('/')) base.pop_back();
  HttpRequest session{.method = "PUT", .url = base + "/latest/api/token", .past_proxies = true};
  session.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  const std::optional<std::string> answer = ask_metadata(session, base, waits, why_none);
  const std::string token(trimmed(answer.value_or("")));
  if (token.find_first_of("\r\n") != std::string::npos) why_none = "the machine's metadata service makes no sense";
  if (token.empty() || !why_none.empty()) return std::nullopt;
  const auto get = [&](const std::string& path) {
    HttpRequest request{.url = base + path, .past_proxies = true};
    request.headers = {"X-aws-ec2-metadata-token: " + token};
    request.secrets = {token};
    return ask_metadata(request, base, waits, why_none).value_or("");
  };
  const std::string roles = "/latest/meta-data/iam/security-credentials/";
  const std::string list = get(roles);
  const std::string role(trimmed(std::string_view(list).substr(0, list.find('\n'))));
  if (role.empty()) {
    if (why_none.empty()) why_none = "this machine has no role";
    return std::nullopt;
  }
  const std::string text = get(roles + percent_encoded(role, false));
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
    {"credential_process", "sso_session", "sso_start_url", "role_arn", "web_identity_token_file"});

/// What the profile has instead of keys.
std::string without_keys() {
  for (const char* const way : kOtherWays) {
    if (profile_setting(way).empty()) continue;
    return core::format(
        "the profile {} has {}, which Penstock does not follow: put the keys that it gives into "
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (`aws configure "
        "export-credentials --format env` prints them)",
        core::quoted(profile_name()), way);
  }
  return core::format("the profile {} has none", core::quoted(profile_name()));
}

}  // namespace

Keys aws_keys(std::string& why_none) {
  if (const std::string anonymous = variable("PENSTOCK_S3_ANONYMOUS"); !anonymous.empty() && anonymous != "0") {
    why_none = "PENSTOCK_S3_ANONYMOUS is set";
    return {};
  }
  const std::string id = variable("AWS_ACCESS_KEY_ID");
  const std::string secret = variable("AWS_SECRET_ACCESS_KEY");
  if (id.empty() != secret.empty()) {
    throw Error(ErrorCode::kPermission,
                "one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set and the other is not; set both or none");
  }
  if (!id.empty()) return {id, secret, variable("AWS_SESSION_TOKEN")};
  Keys keys{profile_setting("aws_access_key_id"), profile_setting("aws_secret_access_key"),
            profile_setting("aws_session_token")};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  keys = kept().get(kServices, fetch, why_none);
  why_none = core::format("there are no keys: AWS_ACCESS_KEY_ID is not set, {}, and {}", without_keys(), why_none);
  return keys;
}

bool forget_aws_keys() { return kept().forget(); }

}  // namespace penstock::io::remote
