#include "io/remote/list_page.h"

#include <utility>

#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "io/remote/fetch.h"
#include "io/remote/store.h"
#include "io/remote/xml.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

/// A page of 5000 keys of 1024 bytes, each of them as %XX, and what is said beside them.
constexpr std::size_t kMostPage = std::size_t{32} << 20;
/// In a row. Amazon gives some where many objects were deleted whose versions are kept.
constexpr std::size_t kMostEmptyPages = 10'000;

}  // namespace

std::string page_of(const Location& bucket, const Query& query) {
  Exchange exchange;
  exchange.request = [&] { return request_for(bucket, {.query = query}); };
  exchange.most_text = kMostPage;
  address(exchange, bucket);
  run({&exchange, 1});
  return std::move(exchange.answer.text);
}

void require_whole(const std::string& xml, std::string_view tag, const std::string& name) {
  if (xml_element(xml, tag) && xml.find("<!") == xml.npos) return;
  throw Error(ErrorCode::kIo, "the answer is not the listing of a bucket; check the store's endpoint", {.path = name});
}

std::string wanted_key(std::string key, std::string_view prefix, const std::string& name) {
  if (key.starts_with(prefix)) return key;
  throw Error(ErrorCode::kIo,
              core::format("the store lists {}, which does not begin with {} as it was asked", core::quoted(key),
                           core::quoted(prefix)),
              {.path = name});
}

std::uint64_t size_from(const std::string& text, const std::string& name) {
  if (const auto size = core::parse_number<std::uint64_t>(text)) return *size;
  throw Error(ErrorCode::kIo, "the store lists an object without its size", {.path = name});
}

void PagesSeen::add(const std::string& first, bool is_empty, const std::string& token) {
  empty_ = is_empty ? empty_ + 1 : 0;
  const bool again =
      (!first.empty() && !firsts_.insert(first).second) || (!token.empty() && !tokens_.insert(token).second);
  if (!again && empty_ < kMostEmptyPages) return;
  throw Error(ErrorCode::kIo,
              again ? "the store lists the same objects again and again; name the objects, or ask its maker"
                    : "the store gives page behind page without an object; name the objects, or ask its maker",
              {.path = name_});
}

}  // namespace penstock::io::remote
