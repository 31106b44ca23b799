// The chain of places that may hold keys, in the order in which Amazon's own tools look. Services are asked by plain
// HTTP requests of this room; what they give is kept until five minutes before it ends.

#include "io/remote/credentials.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "core/format.h"
#include "core/per_process.h"
#include "core/text.h"
#include "io/remote/fetch.h"
#include "io/remote/json_text.h"
#include "io/remote/location.h"
#include "io/remote/profile.h"
#include "io/remote/settings.h"
#include "io/remote/small_file.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

using Clock = std::chrono::system_clock;

/// Keys are fetched anew so long before they end.
constexpr std::chrono::minutes kEarly{5};
/// That a machine has no metadata service is believed so long.
constexpr std::chrono::minutes kNone{1};
/// A service that failed while keys are still good is asked again after this, or a tenth of the time that is left.
constexpr std::chrono::seconds kAgain{10};

using core::trimmed;

std::string either(std::string value, std::string otherwise) { return value.empty() ? otherwise : value; }

/// "2026-01-02T03:04:05Z"
std::optional<Clock::time_point> time_of(const std::string& text) {
  std::tm parts{};
  if (::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return std::nullopt;
  return Clock::from_time_t(::timegm(&parts));
}

struct Fetched {
  Keys keys;
  std::optional<Clock::time_point> ends;
};

Fetched fetched_of(std::string id, std::string secret, std::string token, const std::string& ends,
                   std::string_view place) {
  if (id.empty() || secret.empty()) {
    throw Error(ErrorCode::kPermission, core::format("{} gave no keys; check the role of this machine", place));
  }
  return {{std::move(id), std::move(secret), std::move(token)}, time_of(ends)};
}

Fetched from_json(const std::string& text, std::string_view place) {
  const auto get = [&](const char* name) { return json_text(text, name); };
  return fetched_of(get("AccessKeyId"), get("SecretAccessKey"), get("Token"), get("Expiration"), place);
}

/// `patient`: whether the service is there for sure, so that it is worth trying again.
Exchange asked(const HttpRequest& request, const std::string& name, bool patient) {
  Exchange exchange;
  exchange.name = name;
  exchange.request = [&] { return request; };
  exchange.patient = patient;
  run_all({&exchange, 1});
  return exchange;
}

/// The text that a service answers with.
std::string ask(const HttpRequest& request, const std::string& name, bool patient) {
  Exchange exchange = asked(request, name, patient);
  if (exchange.error) throw *exchange.error;
  return std::move(exchange.answer.text);
}

std::optional<Fetched> from_web_identity(bool waits) {
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
  const std::string text = ask(request, endpoint, waits);
  return fetched_of(xml_text(text, "AccessKeyId"), xml_text(text, "SecretAccessKey"), xml_text(text, "SessionToken"),
                    xml_text(text, "Expiration"), "the token service");
}

/// Keys may be asked for without TLS only of this machine and of what containers are given.
bool may_be_asked(const std::string& url) {
  const std::string_view host = host_of(url);
  return is_private(url) || host == "169.254.170.2" || host == "169.254.170.23" || host == "[fd00:ec2::23]";
}

std::optional<Fetched> from_container(bool waits) {
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
  return from_json(ask(request, url, waits), "the container's service");
}

/// What the metadata of an instance says. Nothing on a machine that has none, which is found out by waiting for it for
/// a second. A service that was there and did not give a good answer is asked again (`waits`), or its error is thrown:
/// that it has no keys is not known.
std::optional<std::string> metadata(const HttpRequest& request, const std::string& base, bool waits,
                                    std::string& why_none) {
  Exchange exchange = asked(request, base, false);
  const long status = exchange.answer.status;
  const bool may_pass = exchange.answer.connected && (status < 200 || status == 429 || status >= 500);
  if (exchange.error && may_pass && waits) exchange = asked(request, base, true);
  if (!exchange.error) return std::move(exchange.answer.text);
  const ErrorCode code = exchange.error->code();
  if (code == ErrorCode::kCancelled || code == ErrorCode::kUnsupported) throw *exchange.error;
  if (may_pass) throw exchange.error->prefixed("the keys of this machine's role cannot be had: ");
  why_none = core::format("the machine's metadata service gave none ({})", exchange.error->message());
  return std::nullopt;
}

std::optional<Fetched> from_instance(bool waits, std::string& why_none) {
  if (variable("AWS_EC2_METADATA_DISABLED") == "true") {
    why_none = "AWS_EC2_METADATA_DISABLED is true";
    return std::nullopt;
  }
  std::string base = either(variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254");
  while (base.ends_with('/')) base.pop_back();
  HttpRequest session{.method = "PUT", .url = base + "/latest/api/token", .past_proxies = true};
  session.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  const std::optional<std::string> answer = metadata(session, base, waits, why_none);
  const std::string token(trimmed(answer.value_or("")));
  if (token.find_first_of("\r\n") != std::string::npos) why_none = "the machine's metadata service makes no sense";
  if (token.empty() || !why_none.empty()) return std::nullopt;
  const auto get = [&](const std::string& path) {
    HttpRequest request{.url = base + path, .past_proxies = true};
    request.headers = {"X-aws-ec2-metadata-token: " + token};
    request.secrets = {token};
    return metadata(request, base, waits, why_none).value_or("");
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

struct Kept {
  std::mutex mutex;
  std::string asked;  ///< what the environment said of where to ask
  std::optional<Keys> keys;
  std::string why_none;
  Clock::time_point until{};  ///< they are taken without asking so long
  Clock::time_point ends{};   ///< they are good so long
};

Kept& kept() {
  static constinit core::PerProcess<Kept> one;  // a service is asked under its lock
  return one.get();
}

std::optional<Fetched> fetch(bool waits, std::string& why_none) {
  std::optional<Fetched> found = from_web_identity(waits);
  if (!found) found = from_container(waits);
  return found ? found : from_instance(waits, why_none);
}

/// From services, which give keys that end. While keys are good, a service that fails is asked again later.
Keys fetched_keys(std::string& why_none) {
  Kept& known = kept();
  const std::scoped_lock lock(known.mutex);
  std::string asked;
  for (const char* const name : kServices) asked.append(variable(name)).push_back('\n');
  const Clock::time_point now = Clock::now();
  const bool is_known = known.keys && asked == known.asked;
  why_none = known.why_none;
  if (is_known && now < known.until) return *known.keys;
  const bool is_good = is_known && !known.keys->id.empty() && now < known.ends;
  const auto later = [&] { return now + std::min<Clock::duration>(kAgain, (known.ends - now) / 10); };
  std::optional<Fetched> found;
  why_none.clear();
  try {
    found = fetch(!is_good, why_none);
  } catch (const Error& error) {
    if (!is_good || error.code() == ErrorCode::kCancelled) throw;
  }
  if (!found && is_good) {
    known.until = later();
    return *known.keys;
  }
  known.asked = std::move(asked);
  known.why_none = why_none;
  known.keys = found ? found->keys : Keys{};
  known.ends = !found ? now + kNone : found->ends.value_or(Clock::time_point::max());
  known.until = found && found->ends ? std::max(*found->ends - kEarly, later()) : known.ends;
  return *known.keys;
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
  keys = fetched_keys(why_none);
  why_none = core::format("there are no keys: AWS_ACCESS_KEY_ID is not set, {}, and {}", without_keys(), why_none);
  return keys;
}

bool forget_aws_keys() {
  Kept& known = kept();
  const std::scoped_lock lock(known.mutex);
  const bool had = known.keys && !known.keys->id.empty();
  known.keys.reset();
  return had;
}

}  // namespace penstock::io::remote
