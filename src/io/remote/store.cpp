// How a location becomes a request: the host that serves a bucket, the way its URL is written, and what proves who
// asks.
//
//   s3://BUCKET/KEY   https://BUCKET.s3.REGION.amazonaws.com/KEY, or ENDPOINT/BUCKET/KEY for other stores
//   gs://BUCKET/KEY   https://storage.googleapis.com/BUCKET/KEY
//   hf://, https://   as they are, with a bearer token for the host that it belongs to

#include "io/remote/store.h"

#include <ctime>
#include <fstream>
#include <map>
#include <mutex>

#include "core/format.h"
#include "io/remote/credentials.h"
#include "io/remote/settings.h"
#include "io/remote/sha256.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

struct Regions {
  std::mutex mutex;
  std::map<std::string, std::string> of_bucket;
};

Regions& regions() {
  static Regions& one = *new Regions;
  return one;
}

/// A region ends up in a host's name.
bool is_region(const std::string& text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
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
  return is_region(region) ? region : "us-east-1";
}

std::string without_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string s3_endpoint() {
  std::string endpoint = variable("AWS_ENDPOINT_URL_S3");
  if (endpoint.empty()) endpoint = variable("AWS_ENDPOINT_URL");
  if (endpoint.empty()) endpoint = profile_setting("endpoint_url");
  endpoint = without_slash(std::move(endpoint));
  if (endpoint.empty() || endpoint.starts_with("http://") || endpoint.starts_with("https://")) return endpoint;
  throw Error(ErrorCode::kInvalidArgument,
              "AWS_ENDPOINT_URL must begin with http:// or https://, such as http://localhost:9000");
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
  if (std::string endpoint = s3_endpoint(); !endpoint.empty()) return {std::move(endpoint), in_path};
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

Keys keys_of(const Location& location) {
  if (location.kind == Kind::kS3) return aws_keys();
  return {variable("PENSTOCK_GS_ACCESS_KEY_ID"), variable("PENSTOCK_GS_SECRET_ACCESS_KEY")};
}

void add_bearer(const std::string& token, HttpRequest& request) {
  if (token.empty()) return;
  if (token.find_first_of("\r\n") != std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument, "the token for this URL has a line break in it");
  }
  request.headers.push_back("Authorization: Bearer " + token);
  request.secrets.push_back(token);
}

void sign(const Location& location, const Ask& ask, const Place& place, const std::string& region,
          HttpRequest& request) {
  const Keys keys = keys_of(location);
  if (keys.id.empty() || keys.secret.empty()) {
    if (location.kind == Kind::kGs) add_bearer(variable("GOOGLE_OAUTH_ACCESS_TOKEN"), request);
    return;
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

std::string hf_token() {
  if (std::string token = variable("HF_TOKEN"); !token.empty()) return token;
  std::string folder = variable("HF_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.cache/huggingface";
  std::string token;
  if (!folder.empty()) std::getline(std::ifstream(folder + "/token") >> std::ws, token);
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  return token;
}

/// A token for plain URLs is for one host, which has to be named: it would go to strangers otherwise.
void add_token(const Location& location, HttpRequest& request) {
  if (location.kind == Kind::kHf) {
    add_bearer(hf_token(), request);
  } else if (const std::string host = variable("PENSTOCK_HTTP_TOKEN_HOST");
             !host.empty() && authority_of(location.url) == host) {
    add_bearer(variable("PENSTOCK_HTTP_TOKEN"), request);
  }
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
  sign(location, ask, place, region, request);
  return request;
}

std::string identity(const Location& location) {
  if (!location.in_bucket()) return location.url;
  const std::string endpoint = location.kind == Kind::kGs ? variable("PENSTOCK_GS_ENDPOINT") : s3_endpoint();
  return core::format("{}\n{}\n{}\n{}", location.kind == Kind::kGs ? "gs" : "s3", without_slash(endpoint),
                      location.bucket, location.key);
}

bool learn_region(const std::string& bucket, const std::string& region) {
  if (!is_region(region)) return false;
  Regions& known = regions();
  const std::scoped_lock lock(known.mutex);
  return std::exchange(known.of_bucket[bucket], region) != region;
}

}  // namespace penstock::io::remote
