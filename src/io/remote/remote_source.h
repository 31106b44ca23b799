#pragma once

// The source behind a URL. opening.cpp makes it, many at once; its reads become requests (fetch.h), or come from the
// cache on disk (cache/cached_ranges.h).

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/copy/scatter.h"
#include "io/read/reader.h"
#include "io/remote/cache/cached_ranges.h"
#include "io/remote/fetch.h"
#include "io/remote/location.h"
#include "io/remote/settings.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::io::remote {

/// An object at a URL. Its head is kept, all of it where it is small: it is then memory, and no further request is
/// made. With a cache (cache/block_cache.h), ranges come from there where they can. Thread-safe.
class RemoteSource final : public ByteSource {
 public:
  /// What the first request of an object asks for.
  static constexpr std::uint64_t kHead = std::uint64_t{64} << 10;

  const std::string& name() const noexcept override { return location_.shown; }
  std::uint64_t size() const noexcept override { return size_; }
  Buffer memory() const override { return size_ <= head_.size() ? head_ : Buffer(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override;
  /// What requests cost: some hundred bytes, and a round trip each. Behind a cache, which reads and hashes so much at
  /// once, a longer gap costs more than it saves.
  ReadCosts costs() const noexcept;
  /// Options of its location.
  const ValuesPtr& values() const noexcept { return location_.values; }
  /// What opening it took.
  const RemoteTraffic& opening_traffic() const noexcept { return opening_; }
  /// Fills the parts from one run at `offset`. kTruncated, kChanged, kTimeout, kIo, kPermission, kNotFound, kCancelled.
  void read(std::uint64_t offset, std::span<const Scatter> parts) const;
  /// All runs at once. Those that lie close together are one request.
  void read(std::span<const SourceRun> runs) const;
  /// Whether the server tells versions of the object apart, so that one which is replaced meanwhile is noticed.
  bool has_version() const noexcept { return !etag_.empty() || !modified_.empty(); }
  /// What the server calls this version; empty where it has no name for it.
  const std::string& version_name() const noexcept { return etag_.empty() ? modified_ : etag_; }
  /// Whether it has to be read by itself, and not by requests together with others: from a cache, or whole.
  bool reads_alone() const noexcept { return cached_.has_value() || knows_no_ranges_; }
  /// What such a read would ask the server; what is kept is filled in at once.
  void add_exchanges(std::span<const SourceRun> runs, std::vector<Exchange>& out) const;

 private:
  friend class Opening;

  explicit RemoteSource(Location location) : location_(std::move(location)), at_once_(process_requests()) {}
  std::vector<ObjectRange> ranges_of(std::span<const SourceRun> runs) const;
  void add_ranges(std::uint64_t offset, std::span<const Scatter> parts, std::vector<ObjectRange>& out) const;
  void read_ranges(std::span<const ObjectRange> ranges) const;
  void fetch(std::span<const ObjectRange> ranges) const;
  Buffer whole() const;
  Exchange exchange(const ObjectRange& range) const;
  std::optional<Verdict> other_version(const Answer& answer) const;
  Verdict accept(const Answer& answer, std::uint64_t offset, std::uint64_t bytes) const;

  Location location_;
  std::size_t at_once_;
  RemoteTraffic opening_ = {};
  std::uint64_t size_ = 0;
  std::string etag_;
  std::string modified_;  ///< Last-Modified, which tells versions apart where there is no ETag
  Buffer head_;
  std::optional<CachedRanges> cached_;
  /// The server gives all of the object or nothing of it. Then the first read behind the head brings it all, and keeps
  /// it.
  bool knows_no_ranges_ = false;
  mutable std::mutex whole_mutex_;
  mutable Buffer whole_;
  mutable std::mutex redirected_mutex_;
  mutable std::string redirected_;  ///< where the last request was sent to
};

/// An object that was opened, or why it could not be.
using Opened = std::variant<Source, Error>;
/// The source; throws the error.
const Source& source_of(const Opened& opened);

/// Opens objects by one request each, all at once. Those that are in the cache are only asked whether they are still
/// the same, and not even that while they are trusted. `heads`: how much of each is asked for, at least 1; empty:
/// kHead. Objects of up to `small` bytes are memory also where the cache had more of them than was asked for.
/// kCancelled is thrown.
std::vector<Opened> open_all(std::span<const std::string> urls, std::span<const std::uint64_t> heads = {},
                             std::uint64_t small = 0);

}  // namespace penstock::io::remote
