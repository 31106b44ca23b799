// The text has the values of eleven headers on lines of their own, then all headers that begin with "x-ms-", then the
// resource: account, path and query. Of a body without bytes the length is left out, since version 2015-02-21.
//
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key

#include "io/remote/azure_signature.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "core/text.h"
#include "io/remote/base64.h"
#include "io/remote/sha256.h"

namespace penstock::io::remote {
namespace {

/// In the order of their lines, behind the method; "content-length" follows from the body.
constexpr auto kLines = std::to_array<std::string_view>({"content-encoding", "content-language", "content-length",
                                                         "content-md5", "content-type", "date", "if-modified-since",
                                                         "if-match", "if-none-match", "if-unmodified-since", "range"});

using HeaderList = std::vector<std::pair<std::string, std::string>>;

std::string value_of(const SharedKeyRequest& request, std::string_view name) {
  if (name == "content-length") return request.body_bytes == 0 ? std::string() : std::to_string(request.body_bytes);
  const auto is_it = [&](const auto& header) { return header.first == name; };
  const auto found = std::find_if(request.headers.begin(), request.headers.end(), is_it);
  return found == request.headers.end() ? std::string() : std::string(core::trimmed(found->second));
}

std::string canonical_headers(const SharedKeyRequest& request) {
  HeaderList own;
  for (const auto& header : request.headers) {
    if (header.first.starts_with("x-ms-")) own.push_back(header);
  }
  std::sort(own.begin(), own.end());
  std::string out;
  for (const auto& [name, value] : own) out += core::format("{}:{}\n", name, core::trimmed(value));
  return out;
}

std::string canonical_resource(const SharedKeyRequest& request) {
  std::string out = core::format("/{}{}", request.account, request.path);
  Query query = request.query;
  std::sort(query.begin(), query.end());
  for (const auto& [name, value] : query) out += core::format("\n{}:{}", name, value);
  return out;
}

}  // namespace

std::string shared_key_text(const SharedKeyRequest& request) {
  std::string out = std::string(request.method) + "\n";
  for (const std::string_view name : kLines) out += value_of(request, name) + "\n";
  return out + canonical_headers(request) + canonical_resource(request);
}

std::string shared_key(const SharedKeyRequest& request, std::span<const std::uint8_t> key) {
  const Digest signature = hmac_sha256(key, shared_key_text(request));
  return core::format("SharedKey {}:{}", request.account, base64(signature));
}

std::string http_date(std::time_t time) {
  constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return core::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                      kDays.substr(static_cast<std::size_t>(parts.tm_wday) * 3, 3), parts.tm_mday,
                      kMonths.substr(static_cast<std::size_t>(parts.tm_mon) * 3, 3), parts.tm_year + 1900,
                      parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace penstock::io::remote
