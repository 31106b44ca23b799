#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/format.h"
#include "io/copy/record_check.h"
#include "penstock/buffer.h"
#include "penstock/load.h"
#include "penstock/report.h"

namespace penstock::archive {

/// The position of what is not there.
inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

}  // namespace penstock::archive

namespace penstock::detail {

/// What the handles on an opened file share: its index, the table row of its format, and caches of what is computed on
/// first use. Otherwise immutable; thread-safe.
struct ArchiveState {
  const format::Format* format = nullptr;
  format::Index index;
  /// The whole file, if it is so small that it was read whole for its index; else empty.
  Buffer content;
  bool verify_checksums = true;
  double open_seconds = 0;
  RemoteTraffic open_traffic = {};

  /// That of a handle which no file was opened for.
  static std::shared_ptr<const ArchiveState> nothing();
  /// What `archive` shares with its tensors.
  static const ArchiveState& of(const Archive& archive) noexcept { return *archive.state_; }
  static Archive handle(std::shared_ptr<const ArchiveState> state) { return Archive(std::move(state)); }

  const std::string& path() const noexcept { return index.sources.front().name(); }
  const StorageEntry& storage_of(const TensorEntry& entry) const noexcept { return index.storages[entry.storage]; }
  const Source& source_of(const TensorEntry& entry) const noexcept { return index.sources[storage_of(entry).source]; }

  /// The bytes of a storage that is in memory. They belong to the archive, so that a load copies them.
  Buffer memory_of(const StorageEntry& storage) const {
    if (storage.resident) return storage.resident;
    return content.part(static_cast<std::size_t>(storage.offset), static_cast<std::size_t>(storage.nbytes));
  }

  /// The check of a storage's CRC. It is not wanted when no CRC is recorded, or when `options` or those of `open` turn
  /// verifying off. Loads and `inspect` make theirs here. Batches make their own (data/files/whole_file.cpp and
  /// large_file.cpp): the layout of a recognised file is that of an earlier one, but its checksums are its own.
  io::RecordCheck check_of(const StorageEntry& storage, const LoadOptions& options) const noexcept {
    return {{.crc32 = storage.crc32,
             .bytes = storage.nbytes,
             .path = index.sources[storage.source].name(),
             .offset = storage.offset,
             .name = storage.name},
            options.verify && verify_checksums};
  }
  /// Reads storages only to check their CRCs, which must be recorded: many at once where they lie on a server. The
  /// first call reads, later ones do nothing. The storages must not be deflated. kChecksum.
  void verify(std::span<const std::size_t> storages, const LoadOptions& options, Report& report) const;

  /// How many entries are called `name`, and the first of them.
  struct NameMatches {
    std::size_t count = 0;
    std::size_t first = 0;
  };
  NameMatches find(std::string_view name) const;
  /// The whole of a source as memory, mapped once; empty when it cannot be mapped.
  Buffer mapping(std::uint32_t source) const;

 private:
  NameMatches find_exactly(std::string_view name) const;

  mutable std::once_flag names_once_;
  mutable std::vector<std::uint32_t> by_name_;
  mutable std::mutex verified_mutex_;
  mutable std::vector<bool> verified_;  ///< storages that `verify` has read
  mutable std::mutex mappings_mutex_;
  mutable std::vector<Buffer> mappings_;
};

}  // namespace penstock::detail
