#pragma once

// Carries out what read_way.h decides: brings bytes of storages to memory, each unit by its way, and verifies recorded
// checksums on the way. All loads of an archive come here; what they make of the bytes is their own affair.

#include <cstddef>
#include <cstdint>
#include <span>

#include "archive/archive_state.h"
#include "archive/read_way.h"
#include "penstock/load.h"

namespace penstock::archive {

/// What a load does with bytes that the archive has in memory.
enum class Resident : std::uint8_t {
  kCopied,
  kHandedOut,  ///< tensors share them if they are aligned. Only when nobody loads from the archive again
};

/// What a view is part of, which decides whether its CRC is verified.
enum class Extent : std::uint8_t {
  kWhole,  ///< a tensor of the file. Its record is verified, if need be by reading all of it
  kSlice,  ///< part of a tensor. Verified only when its read brings the whole record
};

/// The order in which units of bytes are to be.
struct ByteOrder {
  bool swap = false;
  std::size_t width = 1;
  std::uint64_t phase = 0;  ///< bytes before the first whole unit

  ByteOrder() = default;
  /// That of a tensor, of bytes which begin at `begin` of its storage.
  ByteOrder(const TensorEntry& entry, std::uint64_t begin);
  void apply(const Buffer& bytes) const;
  friend bool operator==(const ByteOrder&, const ByteOrder&) = default;
};

/// Some bytes of one storage, to be brought to memory.
struct ReadUnit {
  const TensorEntry* entry = nullptr;  ///< the tensor whose bytes they are, or one of several; for errors, and kParts
  Stretch wanted = {};
  ReadWay to = {};
  Extent extent = Extent::kWhole;
  ByteOrder order = {};  ///< applied to all bytes if `swap` is set
  /// Where the bytes are, from `begin()` on. If it is set before, they go there; it must be on to.device, and have room
  /// for `bytes_of`. Of kParts: the elements, contiguous in C order; dimensions of stride 0 have one.
  Buffer bytes = {};
  /// The executor's: which buffer of its moves that is part of, and where.
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;

  /// A unit of one view alone.
  static ReadUnit of_view(const detail::ArchiveState& state, const TensorEntry& view, const Aim& aim, Extent extent);

  /// Where `bytes` begin in the storage.
  std::uint64_t begin() const noexcept { return brings_all(to.way) ? 0 : wanted.begin; }
  /// How many bytes it brings.
  std::uint64_t bytes_of(const StorageEntry& storage) const noexcept {
    return brings_all(to.way) ? storage.nbytes : wanted.span;
  }
};

/// What of `options` decides the way of bytes.
Aim aim_of(const detail::ArchiveState& state, const LoadOptions& options);
/// The same for bytes that are wanted on `device` whatever the options say, and not mapped.
Aim aim_at(const detail::ArchiveState& state, Device device, const LoadOptions& options);

/// The check of the record that `view` lies in, for whoever reads the run `wanted` of it: what is given are the bytes
/// of that run, in the order of the file. A header before it is read here. There is nothing to check where no CRC is
/// recorded or wanted. Where the bytes do not come so (`as_stored`: whether they do), or are not all of the record,
/// there is neither, but the record of a whole tensor is read apart first; a slice is not worth that. kChecksum.
io::RecordCheck check_of_run(const detail::ArchiveState& state, const TensorEntry& view, const Stretch& wanted,
                             bool as_stored, Extent extent, const LoadOptions& options, Report& report);

/// Brings the bytes of all units to memory. Those without a place get one: units that lie together in the file lie in
/// common blocks (block_layout.h). A unit that was to be mapped, but whose elements the file does not align, is given
/// another way and read. Fills in the report except for its total; its `why` only if `options.report` is set. Errors
/// name path and offset, and the tensor where it can be told.
void read_units(const detail::ArchiveState& state, std::span<ReadUnit> units, const LoadOptions& options,
                Report& report, Resident resident = Resident::kCopied);

}  // namespace penstock::archive
