// The chain of places that may hold keys, in the order in which Amazon's own tools look. Services are asked by plain
// HTTP requests of this room; what they give is kept until five minutes before it ends.

#include "io/remote/credentials.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "io/remote/fetch.h"
#include "io/remote/json_text.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

using Clock = std::chrono::system_clock;

/// Keys are fetched anew so long before they end.
constexpr std::chrono::minutes kEarly{5};
/// That a machine has no metadata service is believed so long.
constexpr std::chrono::minutes kNone{10};
/// Files of profiles and tokens have kilobytes.
constexpr std::size_t kMostText = std::size_t{4} << 20;

std::optional<std::string> text_of(const std::string& path) {
  struct stat status {};
  if (path.empty() || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (static_cast<std::uint64_t>(status.st_size) > kMostText) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? std::optional(text.str()) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string in_home(const char* name) {
  const std::string home = variable("HOME");
  return home.empty() ? std::string() : home + "/" + name;
}

std::string either(std::string value, std::string otherwise) { return value.empty() ? otherwise : value; }

/// Entries of the profile in use: the file of credentials before that of settings.
struct Profile {
  std::map<std::string, std::string, std::less<>> entries;

  std::string get(std::string_view name) const {
    const auto found = entries.find(name);
    return found == entries.end() ? std::string() : found->second;
  }
};

Profile profile() {
  const std::string name = either(variable("AWS_PROFILE"), "default");
  const auto credentials = text_of(either(variable("AWS_SHARED_CREDENTIALS_FILE"), in_home(".aws/credentials")));
  const auto config = text_of(either(variable("AWS_CONFIG_FILE"), in_home(".aws/config")));
  Profile out;
  const auto take = [&](const std::optional<std::string>& text, const std::string& section) {
    if (!text) return;
    const Sections sections = read_profiles(*text);
    if (const auto found = sections.find(section); found != sections.end()) {
      out.entries.insert(found->second.begin(), found->second.end());
    }
  };
  take(credentials, name);
  take(config, name == "default" ? name : "profile " + name);
  if (out.entries.empty() && !variable("AWS_PROFILE").empty()) {
    throw Error(ErrorCode::kPermission,
                core::format("there is no profile {}; AWS_PROFILE names it", core::quoted(name)));
  }
  return out;
}

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

/// The text that a service answers with. `patient`: whether it is there for sure, so that it is worth trying again.
std::string ask(HttpRequest request, std::string name, bool patient) {
  Exchange exchange;
  exchange.name = std::move(name);
  exchange.request = [&] { return request; };
  exchange.patient = patient;
  run({&exchange, 1});
  return exchange.answer.text;
}

std::optional<Fetched> from_web_identity() {
  const std::string file = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
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
  const std::string text = ask(std::move(request), endpoint, true);
  return fetched_of(xml_text(text, "AccessKeyId"), xml_text(text, "SecretAccessKey"), xml_text(text, "SessionToken"),
                    xml_text(text, "Expiration"), "the token service");
}

/// Keys may be asked for without TLS only of this machine and of what containers are given.
bool may_be_asked(const std::string& url) {
  if (url.starts_with("https://")) return true;
  const std::string_view authority = authority_of(url);
  const std::string_view host = authority.starts_with('[') ? authority.substr(0, authority.find(']') + 1)
                                                           : authority.substr(0, authority.find(':'));
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" || host == "169.254.170.2" ||
         host == "169.254.170.23" || host == "[fd00:ec2::23]";
}

std::optional<Fetched> from_container() {
  const std::string relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string url =
      relative.empty() ? variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") : "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  if (!may_be_asked(url)) {
    throw Error(ErrorCode::kPermission,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI names another host by http; keys are asked for by https there",
                {shown_url(url)});
  }
  HttpRequest request{.url = url, .past_proxies = true};
  std::string token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    token = trimmed(text_of(file).value_or(""));
  }
  if (token.find_first_of("\r\n") != std::string::npos) token.clear();
  if (!token.empty()) {
    request.headers.push_back("Authorization: " + token);
    request.secrets = {token};
  }
  return from_json(ask(std::move(request), shown_url(url), true), "the container's service");
}

/// Nothing on a machine that has no such service, which is found out by waiting for it for a second.
std::optional<Fetched> from_instance() {
  if (variable("AWS_EC2_METADATA_DISABLED") == "true") return std::nullopt;
  std::string base = either(variable("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254");
  while (base.ends_with('/')) base.pop_back();
  try {
    HttpRequest session{.method = "PUT", .url = base + "/latest/api/token", .past_proxies = true};
    session.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
    const std::string token(trimmed(ask(std::move(session), base, false)));
    if (token.empty() || token.find_first_of("\r\n") != std::string::npos) return std::nullopt;
    const auto get = [&](const std::string& path) {
      HttpRequest request{.url = base + path, .past_proxies = true};
      request.headers = {"X-aws-ec2-metadata-token: " + token};
      request.secrets = {token};
      return ask(std::move(request), base, false);
    };
    const std::string roles = "/latest/meta-data/iam/security-credentials/";
    const std::string list = get(roles);
    const std::string role(trimmed(std::string_view(list).substr(0, list.find('\n'))));
    if (role.empty()) return std::nullopt;
    return from_json(get(roles + percent_encoded(role, false)), "the instance's metadata");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kUnsupported) throw;
    return std::nullopt;
  }
}

/// Variables that say which service is asked.
constexpr auto kServices = std::to_array<const char*>(
    {"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
     "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT"});

struct Kept {
  std::mutex mutex;
  std::string asked;  ///< what the environment said of where to ask
  std::optional<Keys> keys;
  Clock::time_point until{};
};

Kept& kept() {
  static Kept& one = *new Kept;
  return one;
}

/// From services, which give keys that end.
Keys fetched_keys() {
  Kept& known = kept();
  const std::scoped_lock lock(known.mutex);
  std::string asked;
  for (const char* const name : kServices) asked.append(variable(name)).push_back('\n');
  if (known.keys && asked == known.asked && Clock::now() < known.until) return *known.keys;
  known.asked = std::move(asked);
  std::optional<Fetched> found = from_web_identity();
  if (!found) found = from_container();
  if (!found) found = from_instance();
  known.keys = found ? found->keys : Keys{};
  known.until = Clock::now() + kNone;
  if (found) known.until = found->ends ? *found->ends - kEarly : Clock::time_point::max();
  return *known.keys;
}

}  // namespace

Sections read_profiles(std::string_view text) {
  Sections out;
  std::map<std::string, std::string, std::less<>>* section = nullptr;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string_view content = trimmed(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[') {
      section = &out[std::string(trimmed(content.substr(1, content.find(']') - 1)))];
    } else if (const std::size_t equals = content.find('='); equals != std::string_view::npos && section != nullptr) {
      // Lines that begin with a space belong to the entry above them, such as "s3 =".
      if (line.front() == ' ' || line.front() == '\t') continue;
      (*section)[std::string(trimmed(content.substr(0, equals)))] = trimmed(content.substr(equals + 1));
    }
  }
  return out;
}

std::string profile_setting(std::string_view name) { return profile().get(name); }

Keys aws_keys() {
  if (const std::string anonymous = variable("PENSTOCK_S3_ANONYMOUS"); !anonymous.empty() && anonymous != "0")
    return {};
  const std::string id = variable("AWS_ACCESS_KEY_ID");
  const std::string secret = variable("AWS_SECRET_ACCESS_KEY");
  if (id.empty() != secret.empty()) {
    throw Error(ErrorCode::kPermission,
                "one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set and the other is not; set both or none");
  }
  if (!id.empty()) return {id, secret, variable("AWS_SESSION_TOKEN")};
  const Profile known = profile();
  Keys keys{known.get("aws_access_key_id"), known.get("aws_secret_access_key"), known.get("aws_session_token")};
  if (!keys.id.empty() && !keys.secret.empty()) return keys;
  return fetched_keys();
}

bool forget_aws_keys() {
  Kept& known = kept();
  const std::scoped_lock lock(known.mutex);
  const bool had = known.keys && !known.keys->id.empty();
  known.keys.reset();
  return had;
}

}  // namespace penstock::io::remote
