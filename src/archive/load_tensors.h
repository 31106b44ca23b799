#pragma once

// Loads of tensors into memory of their own: of many, whose storages are read whole and stay shared, and of one alone,
// or a slice of it.

#include <span>
#include <vector>

#include "archive/archive_state.h"
#include "archive/read_units.h"
#include "penstock/load.h"

namespace penstock::archive {

/// Refuses what cannot be loaded: kUnsafe for an array of objects, kNoDevice.
void require_loadable(const detail::ArchiveState& state, const TensorEntry& entry, const LoadOptions& options);

/// Loads `wanted`, which are entries of the archive or slices of them. Each storage is read once and whole, into common
/// blocks in the order of the files, and tensors that share a storage in the file share it in memory. A tensor gets
/// memory of its own when its bytes must be changed and those of other tensors of its storage must not (byte order,
/// conj and neg bits), or when it would not be aligned. Where `aim` asks for a map, tensors are views of the mapped
/// file, and those that it does not align are read one by one. Fills in the report except for its total; its `why` only
/// if `options.report` is set.
std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted, const Aim& aim,
                                 const LoadOptions& options, Report& report, Resident resident = Resident::kCopied);

/// Loads one entry of the archive, or a slice of one, into memory of its own. Reads only its bytes and short gaps
/// between them; a compressed storage is inflated whole. Elements without holes between them in the file keep their
/// strides (Fortran order stays), others become contiguous. Dimensions of stride 0 stay so. Maps instead if `aim` asks
/// for it. Fills in the report except for its total.
Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const Aim& aim, const LoadOptions& options,
                 Report& report, Extent extent = Extent::kWhole);

/// The same by what the options say.
inline std::vector<Tensor> load_tensors(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                        const LoadOptions& options, Report& report,
                                        Resident resident = Resident::kCopied) {
  return load_tensors(state, wanted, aim_of(state, options), options, report, resident);
}
inline Tensor load_view(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                        Report& report, Extent extent = Extent::kWhole) {
  return load_view(state, view, aim_of(state, options), options, report, extent);
}

}  // namespace penstock::archive
