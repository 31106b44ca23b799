#pragma once

// Loads whose tensors lie in one block of memory, which is what LoadOptions::shared and pinned ask for, and where in
// it storages lie.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "archive/read_units.h"
#include "penstock/load.h"

namespace penstock::archive {

/// Where storages lie in one block, in the order of the files.
struct OneBlock {
  struct Place {
    std::size_t storage = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Place> places;
  std::uint64_t bytes = 0;

  /// Adds room behind all others, and says where it begins. kCorrupt where the block would not fit in 64 bits.
  std::uint64_t add(std::uint64_t more);
};

/// Places for the storages of an index that are wanted, a flag for each. kCorrupt as `add`.
OneBlock lay_out_in_one(const format::Index& index, const std::vector<bool>& wanted);

/// Whether all tensors of such a load lie in one block.
bool wants_one_block(const LoadOptions& options) noexcept;
/// Refuses options that ask for other memory than such a block: kUnsupported.
void require_host_block(const LoadOptions& options);
/// Refuses a block, a map or a device, where memory is filled that is there: kInvalidArgument.
void require_no_memory(const LoadOptions& options);

/// Loads `wanted`, entries of the archive, into one block. Storages are read whole and stay shared. Values that lie in
/// none of them (converted ones, torch's conj and neg bits) have a place behind them; entries that are the same view of
/// the same bytes have one. Fills in the report except for its total.
std::vector<Tensor> load_in_one_block(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                      const LoadOptions& options, Report& report);
/// The same of one view, which may be a slice: only its own elements lie there.
Tensor load_view_in_block(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                          Report& report, Extent extent);

}  // namespace penstock::archive
