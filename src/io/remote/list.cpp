// ListObjectsV2: a page has up to 1000 objects and a token for the next. Keys are asked for percent-encoded, because
// XML has no way to write some characters that a key may have; stores that do not know that answer as they do.

#include "io/remote/list.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "io/remote/fetch.h"
#include "io/remote/store.h"
#include "io/remote/store_error.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// A page of 1000 keys of 1024 bytes, each of them as %XX, and what is said beside them.
constexpr std::size_t kMostPage = std::size_t{16} << 20;
constexpr std::size_t kMostObjects = std::size_t{1} << 28;

int digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// As in a form: '+' is a space.
std::string url_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool coded = text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (coded) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

/// take(content) of each element of that name.
template <class Take>
void each(std::string_view xml, std::string_view tag, Take take) {
  const std::string open = core::format("<{}>", tag);
  const std::string close = core::format("</{}>", tag);
  for (std::size_t at = xml.find(open); at != std::string::npos; at = xml.find(open, at)) {
    const std::size_t end = xml.find(close, at);
    if (end == std::string::npos) return;
    take(xml.substr(at + open.size(), end - at - open.size()));
    at = end;
  }
}

/// A list that is cut would look like a shorter one. No store declares entities, which would be names in keys.
void require_whole(const std::string& xml, std::string_view tag, const std::string& name) {
  const bool whole = xml.find(core::format("<{}", tag)) != xml.npos && xml.find(core::format("</{}>", tag)) != xml.npos;
  if (whole && xml.find("<!") == xml.npos) return;
  throw Error(ErrorCode::kIo, "the answer is not the listing of a bucket; check AWS_ENDPOINT_URL", {.path = name});
}

void require_bucket(const Location& location) {
  if (location.in_bucket()) return;
  throw Error(ErrorCode::kUnsupported, "only buckets (s3://, gs://) can be listed; name the files of this URL",
              {.path = location.shown});
}

[[noreturn]] void throw_no_end(const std::string& name) {
  throw Error(ErrorCode::kIo, "the store lists the same objects again and again", {.path = name});
}

class Page {
 public:
  Page(const std::string& xml, const std::string& name, std::string_view prefix)
      : xml_(xml), name_(name), prefix_(prefix), coded_(xml_text(xml, "EncodingType") == "url") {
    require_whole(xml, "ListBucketResult", name);
  }

  void add_to(Objects& out) const {
    each(xml_, "Contents", [&](std::string_view one) {
      std::uint64_t size = 0;
      const std::string text = xml_text(one, "Size");
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || end != text.data() + text.size()) {
        throw Error(ErrorCode::kIo, "the store lists an object without its size", {.path = name_});
      }
      out.objects.push_back({wanted(decoded(xml_text(one, "Key"))), size});
    });
    each(xml_, "CommonPrefixes",
         [&](std::string_view one) { out.folders.push_back(wanted(decoded(xml_text(one, "Prefix")))); });
  }

  /// That of the next page; empty behind the last.
  std::string token() const {
    if (xml_text(xml_, "IsTruncated") != "true") return {};
    std::string token = xml_text(xml_, "NextContinuationToken");
    if (!token.empty()) return token;
    throw Error(ErrorCode::kIo,
                "the store says that there are more objects, and not how to ask for them: it does not know "
                "ListObjectsV2; name the objects, or ask its maker",
                {.path = name_});
  }

 private:
  std::string decoded(std::string text) const { return coded_ ? url_decoded(text) : std::move(text); }

  /// Whoever asked cuts the prefix off.
  std::string wanted(std::string key) const {
    if (key.starts_with(prefix_)) return key;
    throw Error(ErrorCode::kIo,
                core::format("the store lists {}, which does not begin with {} as it was asked", core::quoted(key),
                             core::quoted(prefix_)),
                {.path = name_});
  }

  const std::string& xml_;
  const std::string& name_;
  std::string_view prefix_;
  bool coded_;
};

std::string page_of(const Location& bucket, const Query& query) {
  Exchange exchange;
  exchange.request = [&] { return request_for(bucket, {.query = query}); };
  exchange.most_text = kMostPage;
  address(exchange, bucket);
  run({&exchange, 1});
  return std::move(exchange.answer.text);
}

}  // namespace

Objects list_objects(const Location& location, std::string_view prefix, bool deep) {
  require_bucket(location);
  Location bucket = location;
  bucket.key.clear();
  Objects out;
  std::string token;
  do {
    Query query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", std::string(prefix)}};
    if (!deep) query.emplace_back("delimiter", "/");
    if (!token.empty()) query.emplace_back("continuation-token", token);
    const std::string xml = page_of(bucket, query);
    const Page page(xml, bucket.shown, prefix);
    page.add_to(out);
    if (out.objects.size() > kMostObjects) {
      throw Error(ErrorCode::kLimit, core::format("there are more than {} objects", kMostObjects),
                  {.path = bucket.shown});
    }
    if (std::exchange(token, page.token()) == token && !token.empty()) throw_no_end(bucket.shown);
  } while (!token.empty());
  // Stores order keys as UTF-16 or by folder; whoever asks wants one order.
  const auto before = [](const Object& a, const Object& b) { return a.key < b.key; };
  std::sort(out.objects.begin(), out.objects.end(), before);
  std::sort(out.folders.begin(), out.folders.end());
  return out;
}

std::vector<Begun> list_uploads(const Location& location, std::string_view prefix) {
  require_bucket(location);
  Location bucket = location;
  bucket.key.clear();
  std::vector<Begun> out;
  std::string key;
  std::string id;
  while (true) {
    Query query = {{"prefix", std::string(prefix)}, {"uploads", ""}};
    if (!key.empty()) query.emplace_back("key-marker", key);
    if (!id.empty()) query.emplace_back("upload-id-marker", id);
    const std::string xml = page_of(bucket, query);
    require_whole(xml, "ListMultipartUploadsResult", bucket.shown);
    each(xml, "Upload", [&](std::string_view one) {
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

}  // namespace penstock::io::remote
