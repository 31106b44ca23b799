// Amazon's stores and those that speak like them, Google's among them: the host that serves a bucket, how its URL is
// written, and the signature.
//
//   s3://BUCKET/KEY   https://BUCKET.s3.REGION.amazonaws.com/KEY, or ENDPOINT/BUCKET/KEY for other stores
//   gs://BUCKET/KEY   https://storage.googleapis.com/BUCKET/KEY

#include "io/remote/s3_store.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include "core/format.h"
#include "core/per_process.h"
#include "core/text.h"
#include "io/remote/credentials.h"
#include "io/remote/profile.h"
#include "io/remote/s3_list.h"
#include "io/remote/s3_object.h"
#include "io/remote/settings.h"
#include "io/remote/sha256.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// Of buckets, by the endpoint and the name: two stores may have buckets of one name.
struct Regions {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::string> of_bucket;
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

std::string region_of(const std::string& endpoint, const std::string& bucket) {
  {
    Regions& known = regions();
    const std::scoped_lock lock(known.mutex);
    if (const auto found = known.of_bucket.find({endpoint, bucket}); found != known.of_bucket.end())
      return found->second;
  }
  std::string region = first_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = profile_setting("region");
  if (region.empty()) return "us-east-1";
  if (is_region(region)) return region;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the region is {}, which AWS_REGION, AWS_DEFAULT_REGION or the profile sets; a region has "
                           "letters, digits and '-', such as us-east-1",
                           core::quoted(region)));
}

std::string s3_endpoint() {
  constexpr const char* kIgnores = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";
  constexpr std::string_view kEntry = "ignore_configured_endpoint_urls";
  if (is_on(kIgnores) || (variable(kIgnores).empty() && is_on(kEntry, profile_setting(kEntry)))) return {};
  std::string endpoint = first_variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (endpoint.empty()) endpoint = service_setting("s3", "endpoint_url");
  if (endpoint.empty()) endpoint = profile_setting("endpoint_url");
  return endpoint_of(std::move(endpoint), "AWS_ENDPOINT_URL, or the profile's endpoint_url,");
}

/// Empty for Amazon's and Google's own.
std::string endpoint_for(Kind kind) {
  return kind == Kind::kGs ? endpoint_of(variable("PENSTOCK_GS_ENDPOINT"), "PENSTOCK_GS_ENDPOINT") : s3_endpoint();
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

Place place_of(const Location& location, std::string endpoint, const std::string& region) {
  const std::string in_path = "/" + location.bucket + "/";
  if (location.kind == Kind::kGs) return {endpoint.empty() ? "https://storage.googleapis.com" : endpoint, in_path};
  if (!endpoint.empty()) {
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

/// They are sent in headers: a line break would begin another one.
void require_plain(const Keys& keys, std::string_view where) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f; };
  const auto is_text = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  if (std::all_of(keys.id.begin(), keys.id.end(), is_plain) &&
      std::all_of(keys.token.begin(), keys.token.end(), is_plain) &&
      std::all_of(keys.secret.begin(), keys.secret.end(), is_text)) {
    return;
  }
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the keys have a line break, a space or another character that no key has; copy them anew "
                           "({}), without what stands around them",
                           where));
}

FoundKeys keys_of(const Location& location) {
  if (location.kind == Kind::kS3) return aws_keys();
  return {.keys = keys_of_variables("PENSTOCK_GS_ACCESS_KEY_ID", "PENSTOCK_GS_SECRET_ACCESS_KEY"),
          .remark = "there are no PENSTOCK_GS_ACCESS_KEY_ID and PENSTOCK_GS_SECRET_ACCESS_KEY"};
}

void sign_for(const Location& location, const Ask& ask, const Place& place, const std::string& region,
              HttpRequest& request) {
  const FoundKeys found = keys_of(location);
  const Keys& keys = found.keys;
  if (keys.id.empty() || keys.secret.empty()) {
    request.unsigned_because = core::format("the request was unsigned, because {}", found.remark);
    const std::string token = location.kind == Kind::kGs ? variable("GOOGLE_OAUTH_ACCESS_TOKEN") : std::string();
    if (token.empty()) return;
    request.unsigned_because.clear();
    return add_bearer(token, "GOOGLE_OAUTH_ACCESS_TOKEN", request);
  }
  require_plain(keys, location.kind == Kind::kS3 ? kS3Store.terms.keys : kGsStore.terms.keys);
  if (location.kind == Kind::kS3) request.signer = found.remark;
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

/// A store said that the bucket lies in another region: later requests for it are signed for that. Whether that is
/// news.
bool learn_region(const std::string& bucket, const std::string& region) {
  if (!is_region(region)) return false;
  std::string endpoint = s3_endpoint();
  Regions& known = regions();
  const std::scoped_lock lock(known.mutex);
  return std::exchange(known.of_bucket[{std::move(endpoint), bucket}], region) != region;
}

void sign_in_bucket(const Location& location, const Ask& ask, HttpRequest& request) {
  const std::string endpoint = endpoint_for(location.kind);
  const std::string region = location.kind == Kind::kGs ? "auto" : region_of(endpoint, location.bucket);
  const Place place = place_of(location, endpoint, region);
  request.url = place.host_url + place.path + percent_encoded(location.key, true);
  if (!ask.query.empty()) request.url += "?" + query_text(ask.query);
  if (location.kind == Kind::kS3) request.ca_file = aws_ca_bundle();
  sign_for(location, ask, place, region, request);
}

std::string identity_in_bucket(const Location& location) {
  return core::format("{}\n{}\n{}\n{}", location.kind == Kind::kGs ? "gs" : "s3", endpoint_for(location.kind),
                      location.bucket, location.key);
}

}  // namespace

const Store kS3Store{.sign = sign_in_bucket,
                     .identity = identity_in_bucket,
                     .terms = {.renew_keys = forget_aws_keys,
                               .learn_region = learn_region,
                               .keys = "AWS_ACCESS_KEY_ID or AWS_PROFILE",
                               .endpoint = "AWS_ENDPOINT_URL"},
                     .listing = &kS3Listing,
                     .writing = &kS3Writing};

const Store kGsStore{
    .sign = sign_in_bucket,
    .identity = identity_in_bucket,
    .terms = {.keys = "PENSTOCK_GS_ACCESS_KEY_ID or GOOGLE_OAUTH_ACCESS_TOKEN", .endpoint = "PENSTOCK_GS_ENDPOINT"},
    .listing = &kS3Listing,
    .writing = &kGsWriting};

}  // namespace penstock::io::remote
