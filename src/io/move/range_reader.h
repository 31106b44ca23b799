#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "io/copy/copy.h"
#include "io/move/checksums.h"
#include "io/move/device_routes.h"
#include "io/move/device_writes.h"
#include "io/move/move.h"
#include "io/move/routes.h"
#include "io/move/work_queue.h"
#include "io/read/cached_copies.h"
#include "io/read/direct_file.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::io {

/// Brings the ranges of a move's plan to their places, each on the route that is best for it (routes.h). Bytes in the
/// page cache are copied by the system or out of a mapping (cached_copies.h), bytes on the disk are read past the cache
/// (direct_file.h), a device may read large pieces by itself (device_routes.h), and other bytes for a device go through
/// the pinned ring (device_writes.h). A range is read in chunks, behind each of which its checksums are computed
/// (checksums.h). Thread-safe.
class RangeReader {
 public:
  /// What a thread keeps from range to range.
  struct Scratch {
    explicit Scratch(Worker& of) noexcept : worker(of) {}
    Worker& worker;
    DirectScratch direct = {};
    CachedCopies::Thread copies = {};
  };

  /// `move` has been checked (io/move/check_move.h). Both must outlive this.
  RangeReader(const Move& move, const EngineOptions& options);

  /// Reads range `index` of the plan; ends early when the worker's queue does not go on. Throws Error with path and
  /// offset. When a copy to a device fails, the offset is that of the first byte of that copy. Copies to devices may go
  /// on until `finish`.
  void read(std::size_t index, Scratch& scratch);
  /// Call after all ranges were read: makes sure that every recorded checksum was compared, and waits for copies to
  /// devices.
  void finish() const;

  /// Has to be settled after a failure.
  const DeviceWrites& writes() const noexcept { return device_; }

  /// For the report. Null when the options name a reader.
  const Routes* routes() const noexcept { return routes_ ? &*routes_ : nullptr; }
  const DeviceRoutes* device_routes() const noexcept { return device_routes_ ? &*device_routes_ : nullptr; }
  /// Null when all goes to host memory.
  const device::PinnedRing* ring() const noexcept { return device_.ring(); }
  std::string_view reader_name(std::uint32_t source) const noexcept { return readers_[source]->name; }
  /// What the reads cost that are waited for: of the source that takes the most of them, or of the disk. Those of a
  /// file in the page cache where there are none.
  ReadCosts costs() const noexcept;

 private:
  /// A range that a thread reads.
  struct Reading {
    std::size_t range;
    Staging staging;
    Scratch& scratch;
    const CachedCopies::RangeCopy* copying = nullptr;  ///< where it is copied out of a mapping
    std::uint64_t staged_from = 0;                     ///< in the file: what lies in the staging's slot begins there

    Spent& spent() const noexcept { return scratch.worker.spent; }
  };

  void read_by_host(Reading& reading, std::span<const Target> targets);
  void read_with_device(DeviceFile& file, Reading& reading, std::span<const Target> targets);
  std::uint64_t read_by_device(DeviceFile& file, std::uint64_t offset, const Target& target, Worker& worker);
  void read_chunks(Reading& reading, std::uint64_t offset, std::span<const Target> targets);
  void read_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets);
  void read_parts(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                  std::span<const Scatter> parts);
  void copy_chunk(Reading& reading, std::uint64_t offset, std::span<const Target> targets,
                  std::span<const Scatter> parts);
  std::uint64_t copy_mapped(const CachedCopies::RangeCopy& from, std::uint64_t offset, const Target& target,
                            std::byte* to);
  Stores stores(const ReadRange& range, std::span<const Target> targets) const;
  /// To host memory, without checksums.
  bool reads_unchecked() const { return checksums_.empty() && device_.empty(); }
  bool reads_in_one_call(std::size_t range) const;
  bool waits(std::size_t range) const noexcept;
  bool waits_for_disk(std::size_t range) const noexcept;
  std::uint64_t chunk_bytes(const Reading& reading, std::uint64_t offset) const;
  std::byte* place(const Target& target, Staging& staging) const;
  void make_room(Reading& reading, std::uint64_t offset) const;
  Error within(const Error& error, const Reading& reading, std::uint64_t offset) const;

  const Move& move_;
  const EngineOptions& options_;
  Checksums checksums_;
  DeviceWrites device_;
  std::vector<const Reader*> readers_;  ///< of each source
  ReadCosts costs_;                     ///< of the source that is asked for the most at once
  std::optional<Routes> routes_;
  std::optional<DeviceRoutes> device_routes_;
  CachedCopies copies_;
};

}  // namespace penstock::io
