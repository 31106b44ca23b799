#pragma once

// The one place that decides how bytes get from where they lie to where they are wanted. Loads, slices, conversions,
// `load_into` and the pieces of `inspect` ask it; read_units.h carries the answer out. docs/design/roads.md has the
// table.

#include <cstdint>
#include <string_view>

#include "io/read/read_costs.h"
#include "penstock/device.h"
#include "penstock/load.h"

namespace penstock::archive {

/// How bytes of a storage get to memory.
enum class Way : std::uint8_t {
  kNothing,  ///< no bytes are wanted
  kMap,      ///< a view of the mapped file
  kMemory,   ///< they are in memory already: shared or copied
  kRun,      ///< one run of the file, to its place
  kParts,    ///< elements that lie apart: parts of the file, with the short gaps between them
  kInflate,  ///< the compressed record, whole, inflated in host memory
  kRing,     ///< the whole storage, inflated or swapped in the pinned ring on its way to a device
};

/// What is wanted of a storage.
struct Stretch {
  std::uint64_t begin = 0;  ///< of the first element in the storage, after decompression
  std::uint64_t span = 0;   ///< from there to the end of the last element
  std::uint64_t bytes = 0;  ///< of all elements; less than `span` where others lie between them
  bool swapped = false;     ///< all elements are in the other byte order
  bool by_host = false;     ///< elements are changed in other ways too, which takes host memory

  friend bool operator==(const Stretch&, const Stretch&) = default;
};
/// What a tensor of the file, or a slice of one, wants.
Stretch stretch_of(const TensorEntry& view);

/// Where bytes are wanted, and what else a load was asked for that decides their way.
struct Aim {
  Device device = {};
  bool mmap = false;
  bool content = false;  ///< a file that was read whole when it was opened may be copied from there
};

struct ReadWay {
  Way way = Way::kNothing;
  Device device = {};  ///< that the bytes are brought to; the host where elements are changed or picked there first

  friend bool operator==(const ReadWay&, const ReadWay&) = default;
};

/// Whether the bytes of a storage are in memory and taken from there.
bool lies_in_memory(const StorageEntry& storage, const Aim& aim) noexcept;

/// The way of what is wanted of a storage. Pure.
ReadWay way_of(const StorageEntry& storage, const Stretch& wanted, const Aim& aim) noexcept;

/// Whether the whole storage is brought by that way, however little of it is wanted.
constexpr bool brings_all(Way way) noexcept { return way == Way::kInflate || way == Way::kRing; }

/// Why the bytes of a view in `source`, which its storage lies in, can be no part of the mapped file, as part of a
/// sentence; empty where they can, if they are aligned there and lie in one place (io/source/composed_source.h).
std::string_view why_unmappable(const TensorEntry& view, const StorageEntry& storage, const Source& source);

/// Whether the bytes in the file are the values, one behind the other in C order: they can be read to their place.
bool lies_as_values(const TensorEntry& view) noexcept;

/// Whether a read of the run `wanted` brings the record of the storage, but for a header that is short enough to be
/// read for its CRC where reads cost so much.
bool brings_record(const StorageEntry& storage, const Stretch& wanted, const io::ReadCosts& costs) noexcept;

}  // namespace penstock::archive
