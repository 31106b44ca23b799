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
#include <cstring>
#include <limits>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "io/read/joined_runs.h"
#include "io/read/reader_rows.h"
#include "io/remote/cache/block_file.h"
#include "io/remote/range_answer.h"
#include "io/remote/store.h"
#include "io/source/source.h"

namespace penstock::io::remote {
namespace {

Verdict changed(std::string_view what, std::string_view before, std::string_view now) {
  return fail(ErrorCode::kChanged, core::format("the object was written anew since it was opened (its {} was {} and is "
                                                "now {}); open it again",
                                                what, core::escaped(before), core::escaped(now)));
}

/// A whole answer says its version as the first one did (`etag`, `modified`), where that said one.
Verdict require_version(const Answer& answer, const std::string& etag, const std::string& modified) {
  const bool has_etag = !etag.empty() && !answer.header("etag").empty();
  const bool has_time = !modified.empty() && !answer.header("last-modified").empty();
  if (has_etag || has_time || (etag.empty() && modified.empty())) return {};
  return again("the server does not say any more which version of the object it sends (ETag, Last-Modified)");
}

/// Nobody is to pay for many more bytes than were asked for.
constexpr ReadCosts kRequestCosts{.least_gap = std::uint64_t{4} << 10,
                                  .most_gap = std::uint64_t{1} << 20,
                                  .piece = std::uint64_t{8} << 20,
                                  .is_paced = true};

}  // namespace

ReadCosts RemoteSource::costs() const noexcept {
  ReadCosts out = kRequestCosts;
  out.at_once = at_once_;
  if (cached_) out.least_gap = out.most_gap = block_file::kPiece;
  return out;
}

/// Where the answer is of another version than the first one was. A weak ETag may stay where bytes change.
std::optional<Verdict> RemoteSource::other_version(const Answer& answer) const {
  const std::string etag = answer.header("etag");
  const bool have_etags = !etag.empty() && !etag_.empty();
  if (have_etags && etag != etag_) return changed("ETag", etag_, etag);
  if (have_etags && !etag_.starts_with("W/")) return std::nullopt;
  const std::string modified = answer.header("last-modified");
  const bool have_times = !modified.empty() && !modified_.empty();
  if (have_times && modified != modified_) return changed("Last-Modified", modified_, modified);
  return std::nullopt;
}

Verdict RemoteSource::accept(const Answer& answer, std::uint64_t offset, std::uint64_t bytes) const {
  const std::optional<ContentRange> range = content_range(answer.header("content-range"));
  if (const std::optional<Verdict> other = other_version(answer)) return *other;
  if (range && range->size && *range->size != size_) {
    return changed("size", std::to_string(size_), std::to_string(*range->size));
  }
  if (answer.status == 416) return changed("size", std::to_string(size_), "less");
  if (answer.status == 200 && !range) return no_ranges();
  if (answer.status != 206 && answer.status != 200) return no_object(answer);
  if (!range || range->first != offset ||
      range->last + 1 != offset + bytes || answer.too_long) {
    return again("the server answered another range than the one asked for");
  }
  return answer.received == bytes ? require_version(answer, etag_, modified_) : short_body(answer, bytes);
}

Exchange RemoteSource::exchange(const ObjectRange& range) const {
  Exchange out;
  out.request = [this, offset = range.offset, bytes = range.bytes] {
    Ask ask{.headers = {range_header(offset, bytes)}};
    // A weak one is never matched (RFC 9110, 13.1.1). Answers are compared in any case.
    if (!etag_.empty() && !etag_.starts_with("W/")) ask.headers.push_back("If-Match: " + etag_);
    return request_for(location_, ask);
  };
  out.into = range.parts;
  address(out, location_);
  out.offset = range.offset;
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
  std::vector<ObjectRange> ranges;
  add_ranges(offset, parts, ranges);
  read_ranges(ranges);
}

void RemoteSource::read(std::span<const SourceRun> runs) const { read_ranges(ranges_of(runs)); }

void RemoteSource::add_exchanges(std::span<const SourceRun> runs, std::vector<Exchange>& out) const {
  for (const ObjectRange& range : ranges_of(runs)) out.push_back(exchange(range));
}

std::vector<ObjectRange> RemoteSource::ranges_of(std::span<const SourceRun> runs) const {
  std::vector<ObjectRange> ranges;
  for (const JoinedRun& one : joined_runs(*this, runs, costs(), std::numeric_limits<std::uint64_t>::max())) {
    add_ranges(one.offset, one.parts, ranges);
  }
  return ranges;
}

/// Copies what is kept, and adds the rest.
void RemoteSource::add_ranges(std::uint64_t offset, std::span<const Scatter> parts,
                              std::vector<ObjectRange>& out) const {
  require_inside(*this, offset, parts);
  const std::uint64_t piece = costs().piece;
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
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(part.bytes, piece - length));
      into.push_back({part.to, some});
      length += some;
      step(some);
      if (length == piece) ask();
    }
  }
  ask();
}

void RemoteSource::read_ranges(std::span<const ObjectRange> ranges) const {
  if (ranges.empty()) return;
  if (knows_no_ranges_) {
    const Buffer all = whole();
    for (const ObjectRange& range : ranges) fill_parts(range.parts, all.data() + range.offset);
    return;
  }
  if (!cached_) return fetch(ranges);
  cached_->read(ranges, [this](std::span<const ObjectRange> missing) { fetch(missing); });
}

Buffer RemoteSource::whole() const {
  const std::scoped_lock lock(whole_mutex_);
  if (whole_.size() == size_) return whole_;
  Buffer all = Buffer::allocate(static_cast<std::size_t>(size_));
  Exchange one = exchange({.offset = 0, .bytes = size_, .parts = {{all.data(), all.size()}}});
  one.request = [this] { return request_for(location_, {}); };
  one.accept = [this](const Answer& answer) {
    if (const std::optional<Verdict> other = other_version(answer)) return *other;
    if (answer.status != 200 || answer.too_long) return changed("size", std::to_string(size_), "another");
    return answer.received == size_ ? require_version(answer, etag_, modified_) : short_body(answer, size_);
  };
  run({&one, 1});
  return whole_ = std::move(all);
}

void RemoteSource::fetch(std::span<const ObjectRange> ranges) const {
  std::vector<Exchange> exchanges;
  for (const ObjectRange& range : ranges) exchanges.push_back(exchange(range));
  run(exchanges);
  const std::scoped_lock lock(redirected_mutex_);
  redirected_ = exchanges.back().redirected;
}

}  // namespace penstock::io::remote
