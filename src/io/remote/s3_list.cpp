// A page has up to 1000 objects and a token for the next. Keys are asked for percent-encoded, because XML has no way to
// write some characters that a key may have; stores that do not know that answer as they do.

#include "io/remote/s3_list.h"

#include <utility>

#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

Query s3_query(std::string_view prefix, bool deep, const std::string& token) {
  Query query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", std::string(prefix)}};
  if (!deep) query.emplace_back("delimiter", "/");
  if (!token.empty()) query.emplace_back("continuation-token", token);
  return query;
}

/// That of the next page; empty behind the last.
std::string s3_token(const std::string& xml, const std::string& name) {
  if (xml_text(xml, "IsTruncated") != "true") return {};
  std::string token = xml_text(xml, "NextContinuationToken");
  if (!token.empty()) return token;
  throw Error(ErrorCode::kIo,
              "the store says that there are more objects, and not how to ask for them: it does not know "
              "ListObjectsV2; name the objects, or ask its maker",
              {.path = name});
}

std::string read_s3_page(const std::string& xml, const std::string& name, std::string_view prefix, Objects& out) {
  require_whole(xml, "ListBucketResult", name);
  const bool coded = xml_text(xml, "EncodingType") == "url";
  const auto key_of = [&](std::string_view one, std::string_view tag) {
    std::string key = xml_text(one, tag);
    return wanted_key(coded ? url_decoded(key) : std::move(key), prefix, name);
  };
  each_element(xml, "Contents", [&](std::string_view one) {
    out.objects.push_back({key_of(one, "Key"), size_from(xml_text(one, "Size"), name)});
  });
  each_element(xml, "CommonPrefixes", [&](std::string_view one) { out.folders.push_back(key_of(one, "Prefix")); });
  return s3_token(xml, name);
}

std::vector<Begun> s3_uploads(const Location& bucket, std::string_view prefix) {
  std::vector<Begun> out;
  std::string key;
  std::string id;
  while (true) {
    Query query = {{"prefix", std::string(prefix)}, {"uploads", ""}};
    if (!key.empty()) query.emplace_back("key-marker", key);
    if (!id.empty()) query.emplace_back("upload-id-marker", id);
    const std::string xml = page_of(bucket, query);
    require_whole(xml, "ListMultipartUploadsResult", bucket.shown);
    each_element(xml, "Upload", [&](std::string_view one) {
      std::string found = xml_text(one, "Key");
      if (found.starts_with(prefix)) {
        out.push_back({std::move(found), xml_text(one, "UploadId"), xml_text(one, "Initiated")});
      }
    });
    if (xml_text(xml, "IsTruncated") != "true") return out;
    const bool goes_on = std::exchange(key, xml_text(xml, "NextKeyMarker")) != key;
    if (std::exchange(id, xml_text(xml, "NextUploadIdMarker")) == id && !goes_on) throw_no_end(bucket.shown);
  }
}

}  // namespace

const Listing kS3Listing{.query = s3_query, .read = read_s3_page, .uploads = s3_uploads};

}  // namespace penstock::io::remote
