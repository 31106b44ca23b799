// A store lists page by page. What a page looks like is each kind's own (list_page.h).

#include "io/remote/list.h"

#include <algorithm>

#include "core/format.h"
#include "core/text.h"
#include "core/url_scheme.h"
#include "io/remote/list_page.h"
#include "io/remote/store.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

constexpr std::size_t kMostObjects = std::size_t{1} << 28;

const Listing& listing_of(const Location& location) {
  if (const Listing* const listing = store_of(location.kind).listing) return *listing;
  throw Error(ErrorCode::kUnsupported,
              core::format("only buckets ({}) can be listed; name the files of this URL", core::store_schemes("and")),
              {.path = location.shown});
}

}  // namespace

Objects list_objects(const Location& location, std::string_view prefix, bool deep) {
  const Listing& listing = listing_of(location);
  Location bucket = location;
  bucket.key.clear();
  Objects out;
  std::string token;
  PagesSeen seen(bucket.shown);
  do {
    const std::size_t objects = out.objects.size();
    const std::size_t folders = out.folders.size();
    const std::string xml = page_of(bucket, listing.query(prefix, deep, token));
    token = listing.read(xml, bucket.shown, prefix, out);
    if (out.objects.size() > kMostObjects) {
      throw Error(ErrorCode::kLimit, core::format("there are more than {} objects", kMostObjects),
                  {.path = bucket.shown});
    }
    const bool has_objects = out.objects.size() > objects;
    seen.add(has_objects ? out.objects[objects].key : std::string(), !has_objects && out.folders.size() == folders,
             token);
  } while (!token.empty());
  // Stores order keys as UTF-16 or by folder; whoever asks wants one order.
  const auto before = [](const Object& a, const Object& b) { return a.key < b.key; };
  std::sort(out.objects.begin(), out.objects.end(), before);
  std::sort(out.folders.begin(), out.folders.end());
  out.folders.erase(std::unique(out.folders.begin(), out.folders.end()), out.folders.end());  // of several pages
  const auto is_same = [](const Object& a, const Object& b) { return a.key == b.key; };
  if (const auto twice = std::adjacent_find(out.objects.begin(), out.objects.end(), is_same);
      twice != out.objects.end()) {
    throw Error(ErrorCode::kIo,
                core::format("the store's list names {} twice, so that it cannot be believed; try again, and ask who "
                             "runs the store",
                             core::quoted(twice->key)),
                {.path = bucket.shown});
  }
  return out;
}

bool lists_uploads(const Location& location) { return listing_of(location).uploads != nullptr; }

std::vector<Begun> list_uploads(const Location& location, std::string_view prefix) {
  const Listing& listing = listing_of(location);
  Location bucket = location;
  bucket.key.clear();
  if (listing.uploads != nullptr) return listing.uploads(bucket, prefix);
  throw Error(
      ErrorCode::kUnsupported,
      "this store has no uploads to list or to end: blocks that were sent and never became an object are deleted "
      "by it within a week",
      {.path = location.shown});
}

}  // namespace penstock::io::remote
