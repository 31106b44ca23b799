// How an object becomes a source: by its first request, by asking whether what the cache has is still the same, or,
// while that is trusted, by the cache alone.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/format.h"
#include "io/file/url.h"
#include "io/remote/cache/claim.h"
#include "io/remote/range_answer.h"
#include "io/remote/remote.h"
#include "io/remote/remote_source.h"
#include "io/remote/store.h"
#include "io/remote/traffic.h"
#include "io/source/source.h"

namespace penstock::io::remote {

/// One object on its way to being a source.
class Opening {
 public:
  Opening(const std::string& url, std::uint64_t head, std::uint64_t small, std::shared_ptr<const BlockCache> cache)
      : source_(new RemoteSource(parse(url))),
        wanted_(static_cast<std::size_t>(head)),
        small_(static_cast<std::size_t>(small)),
        cache_(std::move(cache)) {
    const Location& location = source_->location_;
    if (location.in_bucket() && (location.key.empty() || location.key.ends_with('/'))) {
      throw Error(ErrorCode::kIsDirectory,
                  "this is a bucket or a folder of it where an object was expected; name an object in it",
                  {.path = location.shown});
    }
    if (cache_) {
      key_ = BlockCache::key_of(location);
      look();
    }
  }

  /// What the cache has of it, which another thread may have brought meanwhile.
  void look() { kept_ = cache_->find(key_, wanted_, small_); }
  const std::string& key() const noexcept { return key_; }

  /// Whether no request has to be made.
  bool is_known() const { return kept_ && kept_->is_fresh; }

  Exchange exchange() {
    const Location& location = source_->location_;
    Exchange out;
    // A cache keeps whole blocks. Other sizes than kHead are those of whole objects.
    head_ = Buffer::allocate(cache_ && wanted_ == RemoteSource::kHead ? BlockCache::kBlock : wanted_);
    out.request = [this] {
      Ask ask;
      asked_for_all_ = asks_for_all_;
      if (!asked_for_all_) ask.headers.push_back(range_header(0, head_.size()));
      if (kept_) ask.headers.push_back("If-None-Match: " + kept_->object.etag);
      return request_for(source_->location_, ask);
    };
    out.into = {{head_.data(), head_.size()}};
    address(out, location);
    out.follows = !location.in_bucket();
    out.accept = [this](const Answer& answer) { return accept(answer); };
    return out;
  }

  Source known() {
    source_->etag_ = kept_->object.etag;
    source_->size_ = kept_->object.size;
    source_->head_ = kept_->head;
    source_->cached_.emplace(cache_, std::move(kept_->object));
    const RemoteTraffic saved{.cached_bytes = source_->head_.size()};
    source_->opening_ += saved;
    note_traffic(saved);
    return source_;
  }

  Source source(const Exchange& exchange) {
    source_->etag_ = exchange.answer.header("etag");
    source_->modified_ = exchange.answer.header("last-modified");
    source_->redirected_ = exchange.redirected;
    source_->opening_ = exchange.traffic;
    const bool same = kept_ && source_->etag_ == kept_->object.etag && source_->size_ == kept_->object.size;
    if (exchange.answer.status == kNotModified || same) {
      cache_->confirm(key_);
      return known();
    }
    keep();
    const std::size_t most = source_->size_ <= small_ ? std::max(wanted_, small_) : wanted_;
    const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>({source_->size_, most, head_.size()}));
    // What is kept for long takes no more memory than it has bytes.
    if (kept < head_.size()) {
      source_->head_ = Buffer::allocate(kept);
      if (kept > 0) std::memcpy(source_->head_.data(), head_.data(), kept);
    } else {
      source_->head_ = head_;
    }
    return source_;
  }

 private:
  static constexpr long kNotModified = 304;

  void keep() {
    CachedObject object{.key = key_, .etag = source_->etag_, .url = source_->location_.shown, .size = source_->size_};
    if (!cache_ || source_->knows_no_ranges_ || !BlockCache::may_keep(object)) return;
    const auto bytes = static_cast<std::size_t>(BlockCache::block_bytes(object, 0));
    if (bytes <= head_.size()) cache_->keep(object, 0, {head_.data(), bytes});
    source_->cached_.emplace(cache_, std::move(object));
  }

  Verdict accept(const Answer& answer) {
    if (answer.status == kNotModified && kept_) return {};
    const std::optional<ContentRange> range = content_range(answer.header("content-range"));
    // No range of an object without bytes can be given.
    if (answer.status == 416) {
      if (range && range->size.value_or(1) != 0) {
        return fail(ErrorCode::kIo, "the server refuses the first bytes of an object that has some");
      }
      if (!range) {
        // That it has none is not said, so it is asked for without a range. An answer is judged twice where another
        // one was asked for beside it.
        if (asked_for_all_) return fail(ErrorCode::kIo, "the server answered 416 to no range");
        asks_for_all_ = true;
        return again("the server refused a range and did not say how large the object is");
      }
      source_->size_ = 0;
      return {};
    }
    // Some (rclone) answer a range with 200, and say which it is.
    if (answer.status == 200 && !range) return accept_whole(answer);
    if (answer.status != 206 && answer.status != 200) return no_object(answer);
    if (!range || !range->size) {
      return fail(ErrorCode::kUnsupported,
                  core::format("the server answered {} and does not say how large the object is; download it first",
                               answer.status));
    }
    source_->size_ = *range->size;
    source_->knows_no_ranges_ = false;
    const std::uint64_t wanted = std::min<std::uint64_t>(head_.size(), source_->size_);
    if (range->first != 0 || range->last + 1 != wanted || answer.too_long) {
      return again("the server answered another range than the one asked for");
    }
    return answer.received == wanted ? not_coded(answer) : short_body(answer, wanted);
  }

  /// Of a store, the coding is the object's own, as whoever put it there said. A server may add one that nobody asked
  /// for, but not to what is compressed already.
  Verdict not_coded(const Answer& answer) const {
    const Location& location = source_->location_;
    const std::string_view path = std::string_view(location.url).substr(0, location.url.find('?'));
    const bool is_its_own = location.in_bucket() || path.ends_with("gz") || path.ends_with(".zst");
    return is_its_own || !is_coded(answer) ? Verdict{} : coded(answer);
  }

  /// A server that knows no ranges. Objects that fit are here now; others are read whole when more of them is wanted.
  Verdict accept_whole(const Answer& answer) {
    const std::optional<std::uint64_t> length = byte_count(answer.header("content-length"));
    if (answer.too_long) {
      if (!length || *length <= answer.received) return no_ranges();
      source_->size_ = *length;
      source_->knows_no_ranges_ = true;
      return not_coded(answer);
    }
    // Without either, an answer ends where its connection does, and one that was cut looks like a whole one.
    if (!length && answer.header("transfer-encoding").find("chunked") == std::string::npos) {
      return fail(ErrorCode::kUnsupported,
                  "the server does not say how many bytes it sends, so that a cut answer would pass for a whole one; "
                  "download the file, or ask another server");
    }
    if (!length && answer.code != curl::kOk) return again("the answer was cut");
    if (length && (answer.code != curl::kOk || *length != answer.received)) return short_body(answer, *length);
    source_->size_ = answer.received;
    return not_coded(answer);
  }

  std::shared_ptr<RemoteSource> source_;
  std::size_t wanted_;  ///< of its beginning
  std::size_t small_;   ///< objects of up to so many bytes are kept whole where they have come whole
  std::shared_ptr<const BlockCache> cache_;
  std::string key_ = {};
  std::optional<KeptObject> kept_ = {};
  bool asks_for_all_ = false;   ///< from the next try on
  bool asked_for_all_ = false;  ///< by the last one
  Buffer head_ = {};            ///< what is asked for
};

namespace {

/// An object that has to be asked for, and its place among those that are opened.
struct Asked {
  std::size_t place;
  std::unique_ptr<Opening> opening;
};

void ask(std::span<Asked> asked, std::vector<Opened>& out) {
  // In rounds, because behind a cache each has a megabyte until all of them have come.
  constexpr std::size_t kRound = 256;
  for (std::span<Asked> round; !asked.empty(); asked = asked.subspan(round.size())) {
    round = asked.first(std::min(kRound, asked.size()));
    std::vector<Exchange> exchanges;
    for (const Asked& one : round) exchanges.push_back(one.opening->exchange());
    run_all(exchanges);
    for (std::size_t i = 0; i < round.size(); ++i) {
      const std::unique_ptr<Opening> opening = std::move(round[i].opening);
      const Exchange& exchange = exchanges[i];
      out[round[i].place] = exchange.error ? Opened(*exchange.error) : Opened(opening->source(exchange));
    }
  }
}

/// What another thread is opening is waited for, because its first block is in the cache then.
void ask_once(std::vector<Asked> asked, std::vector<Opened>& out) {
  std::vector<ClaimedBlock> wanted;
  for (const Asked& one : asked) wanted.emplace_back(one.opening->key(), 0);
  Claim claim(std::move(wanted));
  std::vector<Asked> ours;
  for (const std::size_t i : claim.ours()) ours.push_back(std::move(asked[i]));
  std::erase_if(asked, [](const Asked& one) { return one.opening == nullptr; });
  ask(ours, out);
  claim.end();
  if (asked.empty()) return;
  claim.wait_for_others();
  for (Asked& one : asked) {
    one.opening->look();
    if (one.opening->is_known()) out[one.place] = one.opening->known();
  }
  std::erase_if(asked, [](const Asked& one) { return one.opening->is_known(); });
  ask(asked, out);
}

}  // namespace

std::vector<Opened> open_all(std::span<const std::string> urls, std::span<const std::uint64_t> heads,
                             std::uint64_t small) {
  const std::shared_ptr<const BlockCache> cache = BlockCache::of(cache_settings());
  std::vector<Asked> asked;
  std::vector<Opened> out;
  out.reserve(urls.size());
  for (std::size_t i = 0; i < urls.size(); ++i) {
    try {
      auto opening = std::make_unique<Opening>(urls[i], heads.empty() ? RemoteSource::kHead : heads[i], small, cache);
      if (opening->is_known()) {
        out.emplace_back(opening->known());
      } else {
        out.emplace_back(Error(ErrorCode::kIo, {}));
        asked.push_back({i, std::move(opening)});
      }
    } catch (const Error& error) {
      out.emplace_back(error);
    }
  }
  if (cache) {
    ask_once(std::move(asked), out);
  } else {
    ask(asked, out);
  }
  return out;
}

const Source& source_of(const Opened& opened) {
  if (const auto* const error = std::get_if<Error>(&opened)) throw *error;
  return std::get<Source>(opened);
}

Source open_url(std::string_view url) {
  // "s3:x" is a file's name.
  if (!is_url(url)) return open_file(url);
  const std::string one(url);
  return source_of(open_all({&one, 1}).front());
}

void open_each(std::span<const std::string> locations, const std::function<void(const Source&)>& take) {
  std::vector<std::string> urls;
  std::copy_if(locations.begin(), locations.end(), std::back_inserter(urls), is_url);
  const std::vector<Opened> opened = urls.empty() ? std::vector<Opened>() : open_all(urls);
  std::size_t next = 0;
  for (const std::string& location : locations) {
    take(next < urls.size() && location == urls[next] ? source_of(opened[next++]) : open_source(location));
  }
}

std::vector<Source> open_sources(std::span<const std::string> locations) {
  std::vector<Source> out;
  open_each(locations, [&](const Source& source) { out.push_back(source); });
  return out;
}

}  // namespace penstock::io::remote
