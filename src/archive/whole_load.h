#pragma once

// Loading whole storages into memory, each once, for loads of many tensors and for what has to be decoded whole.

#include <cstdint>
#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "penstock/load.h"

namespace penstock::archive {

/// What a load does with bytes that the archive has in memory.
enum class Resident : std::uint8_t {
  kCopied,
  kHandedOut,  ///< tensors share them if they are aligned. Only when nobody loads from the archive again
};

/// Loads `wanted`, which are entries of the archive or slices of them. Each storage is read once and whole, into common
/// blocks in the order of the files, and tensors that share a storage in the file share it in memory. A tensor gets
/// memory of its own when its bytes must be changed and those of other tensors of its storage must not (byte order,
/// conj and neg bits), or when it would not be aligned. Never maps, whatever the options say. Fills in the report
/// except for its total; its `why` only if `options.report` is set.
std::vector<Tensor> load_whole(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                               const LoadOptions& options, Report& report, Resident resident = Resident::kCopied);

}  // namespace penstock::archive
