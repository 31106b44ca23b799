// Runs of servers are cut into pieces, which fill a window of memory one behind the other, whichever runs they are of.
// The window is asked for at once, and its pieces continue the CRCs of their runs in order:
//
//   runs     |--------- a ---------|-- b --|- c -|
//   windows  |#######|#######|#######|#######|

#include "io/read/read_for_crc.h"

#include <algorithm>

#include "core/stop_scope.h"
#include "io/copy/crc32.h"
#include "io/read/reader.h"
#include "penstock/buffer.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

constexpr std::uint64_t kCrcWindow = std::uint64_t{32} << 20;
/// Of one request, where many are made: a connection carries little.
constexpr std::uint64_t kAwaitedForCrc = std::uint64_t{1} << 20;
/// Of one read of a file: still in the second-level cache when its CRC is computed.
constexpr std::uint64_t kCachedForCrc = std::uint64_t{256} << 10;

void require_crc_wanted() {
  if (core::StopScope::stop_requested()) throw Error(ErrorCode::kCancelled, "the load was stopped");
}

std::uint32_t read_by_itself(const CrcRun& run) {
  const Buffer memory = Buffer::allocate(static_cast<std::size_t>(std::min(run.bytes, kCachedForCrc)));
  const Reader& reader = reader_for(*run.source);
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < run.bytes; at += kCachedForCrc) {
    require_crc_wanted();
    const Scatter part{memory.data(), static_cast<std::size_t>(std::min(kCachedForCrc, run.bytes - at))};
    reader.read(*run.source, run.offset + at, {&part, 1});
    crc = crc32(crc, {part.to, part.bytes});
  }
  return crc;
}

/// Runs of servers, through a window.
class Awaited {
 public:
  Awaited(std::span<const CrcRun> runs, std::vector<std::uint32_t>& crcs) : runs_(runs), crcs_(crcs) {
    std::uint64_t bytes = 0;
    for (const CrcRun& run : runs) bytes += std::min(run.bytes, kCrcWindow);
    window_bytes_ = std::min(bytes, kCrcWindow);
  }

  void add(std::size_t run) {
    const CrcRun& of = runs_[run];
    for (std::uint64_t at = 0; at < of.bytes;) {
      if (!window_) window_ = Buffer::allocate(static_cast<std::size_t>(window_bytes_));
      const std::uint64_t bytes = std::min({of.bytes - at, kAwaitedForCrc, window_bytes_ - used_});
      const std::span<std::byte> into(window_.data() + used_, static_cast<std::size_t>(bytes));
      // Reads of one source that are asked for together are joined, so large ones are not.
      const bool joins = !reads_.empty() && reads_.back().source == of.source && last_ + bytes <= kAwaitedForCrc;
      if (!joins) reads_.push_back({of.source});
      last_ = joins ? last_ + bytes : bytes;
      reads_.back().runs.push_back({of.offset + at, into});
      pieces_.push_back({run, into});
      used_ += bytes;
      at += bytes;
      if (used_ == window_bytes_) flush();
    }
  }

  void flush() {
    require_crc_wanted();
    read_at_once(reads_);
    for (const auto& [run, bytes] : pieces_) crcs_[run] = crc32(crcs_[run], bytes);
    reads_.clear();
    pieces_.clear();
    used_ = 0;
  }

 private:
  struct Piece {
    std::size_t run;
    std::span<const std::byte> bytes;
  };

  std::span<const CrcRun> runs_;
  std::vector<std::uint32_t>& crcs_;
  std::uint64_t window_bytes_ = 0;
  Buffer window_;
  std::uint64_t used_ = 0;
  std::uint64_t last_ = 0;  ///< bytes of the last of `reads_`
  std::vector<SourceRuns> reads_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<std::uint32_t> read_for_crc(std::span<const CrcRun> runs) {
  std::vector<std::uint32_t> crcs(runs.size());
  Awaited awaited(runs, crcs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (costs_of(*runs[i].source).waits()) {
      awaited.add(i);
    } else {
      crcs[i] = read_by_itself(runs[i]);
    }
  }
  awaited.flush();
  return crcs;
}

}  // namespace penstock::io
