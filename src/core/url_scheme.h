#pragma once

// The schemes of URLs that are read over a network: the one table of them. It says whether a text is such a URL,
// whether what it names lies in a store, and what can be listed and written. io/remote/stores.cpp has what each
// kind needs to be asked.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::core {

/// Who is asked, and how.
enum class UrlKind : std::uint8_t { kHttp, kS3, kGs, kAz, kHf };

struct UrlScheme {
  std::string_view name;
  UrlKind kind;
  bool is_store;  ///< it has buckets of objects, which can be listed and written; Azure calls a bucket a container
  /// Another way to write the URLs of that kind, CONTAINER@HOST/KEY, where the host is that of an account. Messages
  /// that list schemes leave it out.
  bool has_account = false;
};

inline constexpr UrlScheme kUrlSchemes[] = {
    {"http", UrlKind::kHttp, false},    {"https", UrlKind::kHttp, false},    {"s3", UrlKind::kS3, true},
    {"gs", UrlKind::kGs, true},         {"az", UrlKind::kAz, true},          {"hf", UrlKind::kHf, false},
    {"abfs", UrlKind::kAz, true, true}, {"abfss", UrlKind::kAz, true, true},
};

/// "s3" of "s3://bucket/key", known or not; empty for a plain path, which may have a ':' in it.
constexpr std::string_view scheme_of(std::string_view location) noexcept {
  const std::size_t colon = location.find("://");
  const std::string_view scheme = colon == std::string_view::npos ? std::string_view{} : location.substr(0, colon);
  return scheme.find('/') == std::string_view::npos ? scheme : std::string_view{};
}

/// The row of "s3://bucket/key"; null for what is no such URL. A file may be called "s3:x".
constexpr const UrlScheme* url_scheme(std::string_view text) noexcept {
  for (const UrlScheme& scheme : kUrlSchemes) {
    if (text.starts_with(scheme.name) && text.substr(scheme.name.size()).starts_with("://")) return &scheme;
  }
  return nullptr;
}

/// "s3://, gs:// or az://", for messages, with that word before the last.
std::string store_schemes(std::string_view word);
/// "http, https, s3, gs, az or hf"
std::string all_schemes(std::string_view word);

}  // namespace penstock::core
