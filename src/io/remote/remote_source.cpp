// The first request of an object is a GET of its head. The answer tells the size (Content-Range) and the version
// (ETag), so that nothing is asked before it:
//
//   open   GET, Range: bytes=0-65535                  206, Content-Range: bytes 0-65535/SIZE, ETag: "E"
//   read   GET, Range: bytes=A-B, If-Match: "E"       206 with the same SIZE and "E", or the object has changed
//
// Nothing that a server says is believed unseen: each answer must be for the range that was asked, of the same object,
// and as long as it says.

#include "io/remote/remote_source.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "io/file/url.h"
#include "io/remote/judge.h"
#include "io/remote/remote.h"
#include "io/remote/store.h"
#include "io/remote/traffic.h"
#include "io/source/source.h"

namespace penstock::io::remote {
namespace {

/// "bytes 0-99/1000", or "bytes */1000" of a refusal.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> size = {};
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool fits = error == std::errc() && out <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return fits && end == text.data() + text.size() && !text.empty() ? std::optional(out) : std::nullopt;
}

std::optional<ContentRange> content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange out{.size = number(text.substr(slash + 1))};
  const std::string_view range = text.substr(0, slash);
  if (range == "*") return out;
  const std::optional<std::uint64_t> first = number(range.substr(0, range.find('-')));
  const std::optional<std::uint64_t> last = number(range.substr(std::min(range.size(), range.find('-') + 1)));
  if (!first || !last || *last < *first) return std::nullopt;
  out.first = *first;
  out.last = *last;
  return out;
}

Verdict again(std::string why) { return {.kind = Verdict::Kind::kAgain, .why = std::move(why)}; }

Verdict fail(ErrorCode code, std::string message) {
  return {.kind = Verdict::Kind::kFail, .error = Error(code, std::move(message))};
}

Verdict no_ranges() {
  return fail(ErrorCode::kUnsupported,
              "the server answers a range of the object with all of it; it cannot be read in parts, so download it, or "
              "ask another server");
}

Verdict short_body(std::uint64_t received, std::uint64_t wanted) {
  return again(core::format("the server sent {} of {} bytes", received, wanted));
}

Verdict changed(std::string_view what, std::string_view before, std::string_view now) {
  return fail(ErrorCode::kChanged, core::format("the object was written anew since it was opened (its {} was {} and is "
                                                "now {}); open it again",
                                                what, core::escaped(before), core::escaped(now)));
}

/// How long a gap is read over rather than asked around, behind so many bytes of the same request: a request costs some
/// hundred bytes and a round trip, and nobody is to pay for many more bytes than were asked for.
std::uint64_t worthwhile_gap(std::uint64_t before) {
  constexpr std::uint64_t kAlways = std::uint64_t{4} << 10;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  return std::min(kMost, std::max(kAlways, before / 8));
}

std::string range_header(std::uint64_t offset, std::uint64_t bytes) {
  return core::format("Range: bytes={}-{}", offset, offset + bytes - 1);
}

}  // namespace

/// One object on its way to being a source.
class Opening {
 public:
  Opening(const std::string& url, std::uint64_t head, std::shared_ptr<const BlockCache> cache)
      : source_(new RemoteSource(parse(url))), wanted_(static_cast<std::size_t>(head)), cache_(std::move(cache)) {
    const Location& location = source_->location_;
    if (location.in_bucket() && (location.key.empty() || location.key.ends_with('/'))) {
      throw Error(ErrorCode::kIsDirectory,
                  "this is a bucket or a folder of it where an object was expected; name an "
                  "object in it",
                  {.path = location.shown});
    }
    if (cache_) {
      key_ = BlockCache::key_of(location);
      kept_ = cache_->find(key_, wanted_);
    }
  }

  /// Whether no request has to be made.
  bool is_known() const { return kept_ && kept_->is_fresh; }

  Exchange exchange() {
    const Location& location = source_->location_;
    Exchange out;
    // A cache keeps whole blocks. Other sizes than kHead are those of whole objects.
    head_ = Buffer::allocate(cache_ && wanted_ == RemoteSource::kHead ? BlockCache::kBlock : wanted_);
    out.request = [this] {
      Ask ask{.headers = {range_header(0, head_.size())}};
      if (kept_) ask.headers.push_back("If-None-Match: " + kept_->object.etag);
      return request_for(source_->location_, ask);
    };
    out.into = {{head_.data(), head_.size()}};
    out.name = location.shown;
    out.bucket = location.kind == Kind::kS3 ? location.bucket : std::string();
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
    source_->redirected_ = exchange.redirected;
    source_->opening_ = exchange.traffic;
    const bool same = kept_ && source_->etag_ == kept_->object.etag && source_->size_ == kept_->object.size;
    if (exchange.answer.status == kNotModified || same) {
      cache_->confirm(key_);
      return known();
    }
    keep();
    const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(source_->size_, wanted_));
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
    if (!cache_ || !BlockCache::may_keep(object)) return;
    const auto bytes = static_cast<std::size_t>(BlockCache::block_bytes(object, 0));
    if (bytes <= head_.size()) cache_->keep(object, 0, {head_.data(), bytes});
    source_->cached_.emplace(cache_, std::move(object));
  }

  Verdict accept(const Answer& answer) {
    if (answer.status == kNotModified && kept_) return {};
    const std::optional<ContentRange> range = content_range(answer.header("content-range"));
    // No range of an object without bytes can be given.
    if (answer.status == 416) {
      if (range && range->size.value_or(0) != 0) {
        return fail(ErrorCode::kIo, "the server refuses the first bytes of an object that has some");
      }
      source_->size_ = 0;
      return {};
    }
    // Some (rclone) answer a range with 200, and say which it is.
    if (answer.status == 200 && !range) return accept_whole(answer);
    if ((answer.status != 206 && answer.status != 200) || !range || !range->size) {
      return fail(ErrorCode::kUnsupported,
                  core::format("the server answered {} and does not say how large the object is; download it first",
                               answer.status));
    }
    source_->size_ = *range->size;
    const std::uint64_t wanted = std::min<std::uint64_t>(head_.size(), source_->size_);
    if (range->first != 0 || range->last + 1 != wanted || answer.too_long) {
      return again("the server answered another range than the one asked for");
    }
    return answer.received == wanted ? Verdict{} : short_body(answer.received, wanted);
  }

  /// A server that knows no ranges, which is good enough for objects that fit.
  Verdict accept_whole(const Answer& answer) {
    if (answer.too_long) return no_ranges();
    const std::optional<std::uint64_t> length = number(answer.header("content-length"));
    if (answer.code != curl::kOk || (length && *length != answer.received)) {
      return short_body(answer.received, length.value_or(answer.received));
    }
    source_->size_ = answer.received;
    return {};
  }

  std::shared_ptr<RemoteSource> source_;
  std::size_t wanted_;  ///< of its beginning
  std::shared_ptr<const BlockCache> cache_;
  std::string key_ = {};
  std::optional<KeptObject> kept_ = {};
  Buffer head_ = {};  ///< what is asked for
};

Verdict RemoteSource::accept(const Answer& answer, std::uint64_t offset, std::uint64_t bytes) const {
  const std::string etag = answer.header("etag");
  const bool other = !etag.empty() && !etag_.empty() && etag != etag_;
  const std::optional<ContentRange> range = content_range(answer.header("content-range"));
  if (other) return changed("ETag", etag_, etag);
  if (range && range->size && *range->size != size_) {
    return changed("size", std::to_string(size_), std::to_string(*range->size));
  }
  if (answer.status == 416) return changed("size", std::to_string(size_), "less");
  if (answer.status == 200 && !range) return no_ranges();
  if ((answer.status != 206 && answer.status != 200) || !range || range->first != offset ||
      range->last + 1 != offset + bytes || answer.too_long) {
    return again("the server answered another range than the one asked for");
  }
  return answer.received == bytes ? Verdict{} : short_body(answer.received, bytes);
}

Exchange RemoteSource::exchange(const Range& range) const {
  Exchange out;
  out.request = [this, offset = range.offset, bytes = range.bytes] {
    Ask ask{.headers = {range_header(offset, bytes)}};
    // A weak one is never matched (RFC 9110, 13.1.1). Answers are compared in any case.
    if (!etag_.empty() && !etag_.starts_with("W/")) ask.headers.push_back("If-Match: " + etag_);
    return request_for(location_, ask);
  };
  out.into = range.parts;
  out.name = location_.shown;
  out.offset = range.offset;
  out.bucket = location_.kind == Kind::kS3 ? location_.bucket : std::string();
  out.follows = !location_.in_bucket();
  {
    const std::scoped_lock lock(redirected_mutex_);
    out.redirected = redirected_;
  }
  out.accept = [this, offset = range.offset, bytes = range.bytes](const Answer& answer) {
    return accept(answer, offset, bytes);
  };
  out.etag = etag_;
  return out;
}

void RemoteSource::read(std::uint64_t offset, std::span<std::byte> into) const {
  const Scatter part{into.data(), into.size()};
  read(offset, {&part, 1});
}

void RemoteSource::read(std::uint64_t offset, std::span<const Scatter> parts) const {
  std::vector<Range> ranges;
  add_ranges(offset, parts, ranges);
  read_ranges(ranges);
}

void RemoteSource::read(std::span<const Run> runs) const {
  std::vector<Run> sorted(runs.begin(), runs.end());
  const auto before = [](const Run& a, const Run& b) { return a.offset < b.offset; };
  std::stable_sort(sorted.begin(), sorted.end(), before);
  std::vector<Range> ranges;
  std::vector<Scatter> parts;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const auto ask = [&] {
    if (!parts.empty()) add_ranges(begin, std::exchange(parts, {}), ranges);
  };
  for (const Run& run : sorted) {
    require_inside(*this, run.offset, run.into.size());
    // Behind a cache a gap costs more than it saves: whole blocks are fetched anyway.
    const std::uint64_t most = cached_ ? 0 : worthwhile_gap(end - begin);
    const bool joins = !parts.empty() && run.offset >= end && run.offset - end <= most;
    if (!joins) {
      ask();
      begin = end = run.offset;
    }
    if (run.offset > end) parts.push_back({nullptr, static_cast<std::size_t>(run.offset - end)});
    parts.push_back({run.into.data(), run.into.size()});
    end = run.offset + run.into.size();
  }
  ask();
  read_ranges(ranges);
}

/// Copies what is kept, and adds the rest.
void RemoteSource::add_ranges(std::uint64_t offset, std::span<const Scatter> parts, std::vector<Range>& out) const {
  std::uint64_t bytes = 0;
  for (const Scatter& part : parts) bytes = core::checked_add<std::uint64_t>(bytes, part.bytes, "a scattered read");
  require_inside(*this, offset, bytes);
  std::vector<Scatter> into;
  std::uint64_t begin = offset;
  std::uint64_t length = 0;
  const auto ask = [&] {
    if (length > 0) out.push_back({.offset = begin, .bytes = length, .parts = std::exchange(into, {})});
    begin += std::exchange(length, 0);
  };
  for (Scatter part : parts) {
    const auto step = [&part](std::size_t count) {
      part = {part.to != nullptr ? part.to + count : nullptr, part.bytes - count};
    };
    if (length == 0 && begin < head_.size()) {
      const std::size_t kept = std::min<std::size_t>(part.bytes, head_.size() - static_cast<std::size_t>(begin));
      if (part.to != nullptr && kept > 0) std::memcpy(part.to, head_.data() + begin, kept);
      begin += kept;
      step(kept);
    }
    while (part.bytes > 0) {
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(part.bytes, kPart - length));
      into.push_back({part.to, some});
      length += some;
      step(some);
      if (length == kPart) ask();
    }
  }
  ask();
}

void RemoteSource::read_ranges(std::span<const Range> ranges) const {
  if (ranges.empty()) return;
  if (!cached_) return fetch(ranges);
  cached_->read(ranges, [this](std::span<const Range> missing) { fetch(missing); });
}

void RemoteSource::fetch(std::span<const Range> ranges) const {
  std::vector<Exchange> exchanges;
  for (const Range& range : ranges) exchanges.push_back(exchange(range));
  run(exchanges);
  const std::scoped_lock lock(redirected_mutex_);
  redirected_ = exchanges.back().redirected;
}

std::vector<Opened> open_all(std::span<const std::string> urls, std::span<const std::uint64_t> heads) {
  const std::shared_ptr<const BlockCache> cache = BlockCache::of(cache_settings());
  std::vector<std::unique_ptr<Opening>> openings;
  std::vector<Exchange> exchanges;
  std::vector<Opened> out;
  out.reserve(urls.size());
  for (std::size_t i = 0; i < urls.size(); ++i) {
    try {
      auto opening = std::make_unique<Opening>(urls[i], heads.empty() ? RemoteSource::kHead : heads[i], cache);
      if (opening->is_known()) {
        out.emplace_back(opening->known());
        opening = nullptr;
      } else {
        exchanges.push_back(opening->exchange());
        out.emplace_back(Error(ErrorCode::kIo, {}));
      }
      openings.push_back(std::move(opening));
    } catch (const Error& error) {
      openings.push_back(nullptr);
      out.emplace_back(error);
    }
  }
  if (!exchanges.empty()) run_all(exchanges);
  std::size_t next = 0;
  for (std::size_t i = 0; i < openings.size(); ++i) {
    if (!openings[i]) continue;
    Exchange& exchange = exchanges[next++];
    if (exchange.error) {
      out[i] = *exchange.error;
    } else {
      out[i] = openings[i]->source(exchange);
    }
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

std::vector<Source> open_sources(std::span<const std::string> locations) {
  std::vector<std::string> urls;
  for (const std::string& location : locations) {
    if (is_url(location)) urls.push_back(location);
  }
  std::vector<Opened> opened = urls.empty() ? std::vector<Opened>() : open_all(urls);
  std::vector<Source> out;
  std::size_t next = 0;
  for (const std::string& location : locations) {
    out.push_back(is_url(location) ? source_of(opened[next++]) : open_source(location));
  }
  return out;
}

}  // namespace penstock::io::remote
