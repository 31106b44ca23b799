// How a location becomes a request: the host that serves a bucket, the way its URL is written, and what proves who
// asks.
//
//   s3://BUCKET/KEY   https://BUCKET.s3.REGION.amazonaws.com/KEY, or ENDPOINT/BUCKET/KEY for other stores
//   gs://BUCKET/KEY   https://storage.googleapis.com/BUCKET/KEY
//   hf://, https://   as they are, with a bearer token for the host that it belongs to

#include "io/remote/store.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>

#include "core/format.h"
#include "core/per_process.h"
#include "core/text.h"
#include "io/remote/credentials.h"
#include "io/remote/profile.h"
#include "io/remote/settings.h"
#include "io/remote/sha256.h"
#include "io/remote/small_file.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

struct Regions {
  std::mutex mutex;
  std::map<std::string, std::string> of_bucket;
};

Regions& regions() {
  static constinit core::PerProcess<Regions> one;
  return one.get();
}

/// What may be part of a host's name.
bool is_host_part(std::string_view text) {
  return !text.empty() && text.size() <= 63 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == text.npos;
}

/// What a signature may have for a region: private stores call theirs as they like. '/' and ',' part its fields.
bool is_region(std::string_view text) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != ','; };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), is_plain);
}

std::string region_of(const std::string& bucket) {
  {
    Regions& known = regions();
    const std::scoped_lock lock(known.mutex);
    if (const auto found = known.of_bucket.find(bucket); found != known.of_bucket.end()) return found->second;
  }
  std::string region = variable("AWS_REGION");
  if (region.empty()) region = variable("AWS_DEFAULT_REGION");
  if (region.empty()) region = profile_setting("region");
  if (region.empty()) return "us-east-1";
  if (is_region(region)) return region;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the region is {}, which AWS_REGION, AWS_DEFAULT_REGION or the profile sets; a region has "
                           "letters, digits and '-', such as us-east-1",
                           core::quoted(region)));
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string s3_endpoint() {
  std::string endpoint = variable("AWS_ENDPOINT_URL_S3");
  if (endpoint.empty()) endpoint = variable("AWS_ENDPOINT_URL");
  if (endpoint.empty()) endpoint = service_setting("s3", "endpoint_url");
  if (endpoint.empty()) endpoint = profile_setting("endpoint_url");
  endpoint = without_slash(std::move(endpoint));
  if (endpoint.empty() || endpoint.starts_with("http://") || endpoint.starts_with("https://")) return endpoint;
  throw Error(ErrorCode::kInvalidArgument,
              "AWS_ENDPOINT_URL must begin with http:// or https://, such as http://localhost:9000");
}

/// Whether buckets of another store than Amazon's are part of the host's name, as some want it.
bool are_hosts() {
  std::string style = variable("PENSTOCK_S3_ADDRESSING");
  if (style.empty()) style = profile_setting("s3.addressing_style");
  if (style.empty() || style == "auto" || style == "path") return false;
  if (style == "virtual") return true;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("PENSTOCK_S3_ADDRESSING, or addressing_style of the profile, is {}; it must be path, "
                           "virtual or auto",
                           core::quoted(style)));
}

/// Whether a bucket may be part of a host's name: certificates have one wildcard, so no dots.
bool is_host_name(const std::string& bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 &&
         bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

/// Where a bucket is served: the URL in front of the path, and the path in front of the key.
struct Place {
  std::string host_url;
  std::string path;
};

Place place_of(const Location& location, const std::string& region) {
  const std::string in_path = "/" + location.bucket + "/";
  if (location.kind == Kind::kGs) {
    const std::string endpoint = without_slash(variable("PENSTOCK_GS_ENDPOINT"));
    return {endpoint.empty() ? "https://storage.googleapis.com" : endpoint, in_path};
  }
  if (std::string endpoint = s3_endpoint(); !endpoint.empty()) {
    if (!are_hosts()) return {std::move(endpoint), in_path};
    const std::size_t host = scheme_of(endpoint).size() + 3;
    return {endpoint.insert(host, location.bucket + "."), "/"};
  }
  if (!is_host_part(region)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("Amazon has no region {}; for another store, name it in AWS_ENDPOINT_URL", core::quoted(region)));
  }
  const std::string host = core::format("s3.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  if (!is_host_name(location.bucket)) return {"https://" + host, in_path};
  return {core::format("https://{}.{}", location.bucket, host), "/"};
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

struct Found {
  Keys keys = {};
  std::string why_none = {};
};

Found keys_of(const Location& location) {
  Found out;
  if (location.kind == Kind::kS3) {
    out.keys = aws_keys(out.why_none);
    return out;
  }
  out.keys = {variable("PENSTOCK_GS_ACCESS_KEY_ID"), variable("PENSTOCK_GS_SECRET_ACCESS_KEY")};
  out.why_none = "there are no PENSTOCK_GS_ACCESS_KEY_ID and PENSTOCK_GS_SECRET_ACCESS_KEY";
  return out;
}

/// A token is as good as a password, so it goes to nobody who listens on the way.
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

void sign(const Location& location, const Ask& ask, const Place& place, const std::string& region,
          HttpRequest& request) {
  const Found found = keys_of(location);
  const Keys& keys = found.keys;
  if (keys.id.empty() || keys.secret.empty()) {
    request.unsigned_because = core::format("the request was unsigned, because {}", found.why_none);
    const std::string token = location.kind == Kind::kGs ? variable("GOOGLE_OAUTH_ACCESS_TOKEN") : std::string();
    if (token.empty()) return;
    request.unsigned_because.clear();
    return add_bearer(token, "GOOGLE_OAUTH_ACCESS_TOKEN", request);
  }
  const std::string time = now();
  const std::string hash = !request.payload.empty() ? "UNSIGNED-PAYLOAD"
                           : request.body.empty()   ? std::string(kEmptyHash)
                                                    : hex(sha256(request.body));
  Signable signable{.method = ask.method, .query = ask.query, .payload_hash = hash};
  const std::string path = place.path + percent_encoded(location.key, true);
  // An endpoint may have a path of its own.
  const std::string_view own = std::string_view(place.host_url)
                                   .substr(scheme_of(place.host_url).size() + 3 + authority_of(place.host_url).size());
  const std::string whole = std::string(own) + path;
  signable.path = whole;
  signable.headers = {
      {"host", std::string(authority_of(place.host_url))}, {"x-amz-content-sha256", hash}, {"x-amz-date", time}};
  if (!keys.token.empty()) signable.headers.emplace_back("x-amz-security-token", keys.token);
  for (const auto& [name, value] : signable.headers) request.headers.push_back(core::format("{}: {}", name, value));
  signable.headers.insert(signable.headers.end(), ask.signed_headers.begin(), ask.signed_headers.end());
  request.headers.push_back("Authorization: " + authorization(signable, keys, {.region = region, .timestamp = time}));
  request.secrets = {keys.secret, keys.token};
}

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
void add_token(const Location& location, HttpRequest& request) {
  if (location.kind == Kind::kHf) {
    add_bearer(hf_token(), "HF_TOKEN", request);
  } else if (const std::string host = variable("PENSTOCK_HTTP_TOKEN_HOST");
             !host.empty() && authority_of(location.url) == host) {
    add_bearer(variable("PENSTOCK_HTTP_TOKEN"), "PENSTOCK_HTTP_TOKEN", request);
  }
}

/// A store said that the bucket lies in another region: later requests for it are signed for that. Whether that is
/// news.
bool learn_region(const std::string& bucket, const std::string& region) {
  if (!is_region(region)) return false;
  Regions& known = regions();
  const std::scoped_lock lock(known.mutex);
  return std::exchange(known.of_bucket[bucket], region) != region;
}

}  // namespace

HttpRequest request_for(const Location& location, const Ask& ask) {
  HttpRequest request{
      .method = std::string(ask.method), .headers = ask.headers, .body = ask.body, .payload = ask.payload};
  for (const auto& [name, value] : ask.signed_headers) request.headers.push_back(core::format("{}: {}", name, value));
  if (!location.in_bucket()) {
    request.url = location.url;
    add_token(location, request);
    return request;
  }
  const std::string region = location.kind == Kind::kGs ? "auto" : region_of(location.bucket);
  const Place place = place_of(location, region);
  request.url = place.host_url + place.path + percent_encoded(location.key, true);
  if (!ask.query.empty()) request.url += "?" + query_text(ask.query);
  if (location.kind == Kind::kS3) request.ca_file = aws_ca_bundle();
  sign(location, ask, place, region, request);
  return request;
}

std::string identity(const Location& location) {
  if (!location.in_bucket()) return location.url;
  const std::string endpoint = location.kind == Kind::kGs ? variable("PENSTOCK_GS_ENDPOINT") : s3_endpoint();
  return core::format("{}\n{}\n{}\n{}", location.kind == Kind::kGs ? "gs" : "s3", without_slash(endpoint),
                      location.bucket, location.key);
}

void address(Exchange& exchange, const Location& location) {
  static constexpr Remedies kRemedies{.renew_keys = forget_aws_keys, .learn_region = learn_region};
  exchange.name = location.shown;
  exchange.values = location.values;
  if (location.kind != Kind::kS3) return;
  exchange.bucket = location.bucket;
  exchange.remedies = &kRemedies;
}

}  // namespace penstock::io::remote
