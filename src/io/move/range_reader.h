#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "io/copy/copy.h"
#include "io/move/checksums.h"
#include "io/move/device_routes.h"
#include "io/move/device_writes.h"
#include "io/move/engine.h"
#include "io/move/routes.h"
#include "io/read/copy_trial.h"
#include "io/read/direct_file.h"
#include "io/read/mapped_range.h"
#include "io/read/mapping_window.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::io {

/// Brings ranges of a move's plan to their places, each the way that is best for it: by the system's copy or out of a
/// mapping of what is in the page cache, past it, by a device, and for devices through the pinned ring. Cuts them into
/// chunks and verifies checksums behind each. Thread-safe.
class RangeReader {
 public:
  /// What each reading thread has of its own.
  struct Worker {
    double read_seconds = 0;
    double decode_seconds = 0;  ///< of checksums that are not part of reading
    std::uint64_t mapped_bytes = 0;
    DirectScratch scratch = {};
    MappingWindow window = {};
    bool begun = false;  ///< whether it has read a range
  };

  /// `move` has been checked (io/move/check_move.h). `failed`: no chunk is begun once it is set. All must outlive this.
  RangeReader(const Move& move, const EngineOptions& options, const std::atomic<bool>& failed);

  /// Range `index` of the plan. Throws Error with path and offset (where a copy to a device fails, that of the first
  /// byte that was to be copied together); what was started for a device goes on till `finish`.
  void read(std::size_t index, Worker& worker);
  /// After all ranges were read: every recorded checksum was compared, and copies to devices are awaited.
  void finish() const;

  /// After one failed; as DeviceWrites::settle.
  void settle() const noexcept { device_.settle(); }

  /// What became of it, for the report. Null: a reader was prescribed.
  const Routes* routes() const noexcept { return routes_ ? &*routes_ : nullptr; }
  const DeviceRoutes* device_routes() const noexcept { return device_routes_ ? &*device_routes_ : nullptr; }
  /// Null: all goes to host memory.
  const device::PinnedRing* ring() const noexcept { return device_.ring(); }
  std::string_view reader_name(std::uint32_t source) const noexcept { return readers_[source]->name; }

 private:
  /// A range that a thread reads.
  struct Reading {
    std::size_t range;
    Staging staging;
    Worker& worker;
    std::optional<MappedRange> mapped;
    std::uint64_t staged_from = 0;  ///< in the file: what lies in the staging's slot begins there
  };

  void read_by_host(Reading& reading, std::span<const Target> targets);
  std::uint64_t read_by_device(DeviceFile& file, std::uint64_t offset, const Target& target, Worker& worker);
  void read_chunks(Reading& reading, std::uint64_t offset, std::span<const Target> targets);
  void read_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets);
  void read_parts(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                  std::span<const Scatter> parts);
  std::uint64_t copy_mapped(const MappedRange& from, std::uint64_t offset, const Target& target, std::byte* to);
  Stores stores(const Range& range, std::span<const Target> targets) const;
  std::uint64_t chunk_bytes(const Reading& reading, std::uint64_t offset) const;
  std::byte* place(const Target& target, Staging& staging) const;
  void make_room(Reading& reading, std::uint64_t offset) const;
  Error within(const Error& error, const Reading& reading, std::uint64_t offset) const;

  const Move& move_;
  const EngineOptions& options_;
  const std::atomic<bool>& failed_;
  Checksums checksums_;
  DeviceWrites device_;
  std::vector<const Reader*> readers_;  ///< of each source
  std::optional<Routes> routes_;
  std::optional<DeviceRoutes> device_routes_;
  CopyTrial trial_;
};

/// kCancelled when `stop` was requested.
void require_going_on(const std::stop_token& stop);

}  // namespace penstock::io
