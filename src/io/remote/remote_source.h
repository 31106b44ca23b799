#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/copy/guarded.h"
#include "io/read/reader.h"
#include "io/remote/fetch.h"
#include "io/remote/location.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::io::remote {

/// An object at a URL. Its head is kept, all of it where it is small: it is then memory, and no further request is
/// made. Thread-safe.
class RemoteSource final : public ByteSource {
 public:
  /// What the first request of an object asks for.
  static constexpr std::uint64_t kHead = std::uint64_t{64} << 10;
  /// Longer reads are cut into requests of this.
  static constexpr std::uint64_t kPart = std::uint64_t{8} << 20;

  const std::string& name() const noexcept override { return location_.shown; }
  std::uint64_t size() const noexcept override { return size_; }
  Buffer memory() const override { return size_ <= head_.size() ? head_ : Buffer(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override;
  /// Fills the parts from one run at `offset`. kTruncated, kChanged, kTimeout, kIo, kPermission, kNotFound, kCancelled.
  void read(std::uint64_t offset, std::span<const Scatter> parts) const;
  /// All runs at once. Those that lie close together are one request.
  void read(std::span<const Run> runs) const;

 private:
  friend class Opening;

  explicit RemoteSource(Location location) : location_(std::move(location)) {}
  void add_requests(std::uint64_t offset, std::span<const Scatter> parts, std::vector<Exchange>& out) const;
  void run_all(std::vector<Exchange>& exchanges) const;
  Exchange range(std::uint64_t offset, std::vector<Scatter> into, std::uint64_t bytes) const;
  Verdict accept(const Answer& answer, std::uint64_t offset, std::uint64_t bytes) const;

  Location location_;
  std::uint64_t size_ = 0;
  std::string etag_;
  Buffer head_;
  mutable std::mutex redirected_mutex_;
  mutable std::string redirected_;  ///< where the last request was sent to
};

/// An object that was opened, or why it could not be.
using Opened = std::variant<Source, Error>;
/// The source; throws the error.
const Source& source_of(const Opened& opened);

/// Opens objects by one request each, all at once. `heads`: how much of each is asked for, at least 1; empty: kHead.
/// kCancelled is thrown.
std::vector<Opened> open_all(std::span<const std::string> urls, std::span<const std::uint64_t> heads = {});

}  // namespace penstock::io::remote
