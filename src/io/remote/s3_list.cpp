// A page has up to 1000 objects and a token for the next. Keys are asked for percent-encoded, because XML has no way to
// write some characters that a key may have; stores that do not know that answer as they do.

#include "io/remote/s3_list.h"

#include <cstddef>
#include <utility>

#include "core/format.h"
#include "io/remote/xml.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

Query s3_query(std::string_view prefix, bool deep, const std::string& token) {
  Query query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", std::string(prefix)}};
  if (!deep) query.emplace_back("delimiter", "/");
  if (!token.empty()) query.emplace_back("continuation-token", token);
  return query;
}

/// As many as Amazon lists in a page, and as most other stores do.
constexpr std::size_t kFullPage = 1000;

/// Whether a page of `count` entries says that there are more. Some stores leave it out behind a last page; a full page
/// that says nothing may be one of many.
bool is_truncated(const std::string& xml, const std::string& name, std::size_t count) {
  const std::string said = xml_text(xml, "IsTruncated");
  if (said == "true" || said == "True") return true;
  if (said == "false" || said == "False") return false;
  if (said.empty() && count < kFullPage) return false;
  throw Error(ErrorCode::kIo,
              "the store does not say whether there are more objects than it lists (IsTruncated), so that some may be "
              "missing; name the objects, or ask its maker",
              {.path = name});
}

/// That of the next page; empty behind the last. A token is believed whatever IsTruncated says, because objects would
/// be missing without a word.
std::string s3_token(const std::string& xml, const std::string& name, std::size_t count) {
  std::string token = xml_text(xml, "NextContinuationToken");
  if (!token.empty() || !is_truncated(xml, name, count)) return token;
  throw Error(ErrorCode::kIo,
              "the store says that there are more objects, and not how to ask for them: it does not know "
              "ListObjectsV2; name the objects, or ask its maker",
              {.path = name});
}

std::string read_s3_page(const std::string& xml, const std::string& name, std::string_view prefix, Objects& out) {
  require_whole(xml, "ListBucketResult", name);
  const bool coded = xml_text(xml, "EncodingType") == "url";
  const auto key_of = [&](std::string key) {
    return wanted_key(coded ? url_decoded(key) : std::move(key), prefix, name);
  };
  std::size_t count = 0;
  each_element(xml, "Contents", [&](std::string_view one) {
    ++count;
    out.objects.push_back({key_of(xml_text(one, "Key")), size_from(xml_text(one, "Size"), name)});
  });
  each_element(xml, "CommonPrefixes", [&](std::string_view one) {
    each_element(one, "Prefix", [&](std::string_view folder) {
      ++count;
      out.folders.push_back(key_of(xml_decoded(folder)));
    });
  });
  return s3_token(xml, name, count);
}

std::vector<Begun> s3_uploads(const Location& bucket, std::string_view prefix) {
  std::vector<Begun> out;
  std::string key;
  std::string id;
  PagesSeen seen(bucket.shown);
  while (true) {
    Query query = {{"prefix", std::string(prefix)}, {"uploads", ""}};
    if (!key.empty()) query.emplace_back("key-marker", key);
    if (!id.empty()) query.emplace_back("upload-id-marker", id);
    const std::string xml = page_of(bucket, query);
    require_whole(xml, "ListMultipartUploadsResult", bucket.shown);
    std::size_t count = 0;
    std::string first;
    each_element(xml, "Upload", [&](std::string_view one) {
      std::string found = xml_text(one, "Key");
      if (count++ == 0) first = core::format("{} {}", found, xml_text(one, "UploadId"));
      if (found.starts_with(prefix)) {
        out.push_back({std::move(found), xml_text(one, "UploadId"), xml_text(one, "Initiated")});
      }
    });
    if (!is_truncated(xml, bucket.shown, count)) return out;
    key = xml_text(xml, "NextKeyMarker");
    id = xml_text(xml, "NextUploadIdMarker");
    seen.add(first, count == 0, core::format("{} {}", key, id));
  }
}

}  // namespace

const Listing kS3Listing{.query = s3_query, .read = read_s3_page, .uploads = s3_uploads};

}  // namespace penstock::io::remote
