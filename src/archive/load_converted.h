#pragma once

// Loads with LoadOptions::dtype: when tensors are converted, and the reads that convert on the way.

#include <span>
#include <vector>

#include "archive/load_tensors.h"
#include "penstock/load.h"

namespace penstock::archive {

/// Whether a load with these options gives tensors of this type another one.
bool is_converted(const DType& stored, const LoadOptions& options);
/// Refuses a LoadOptions::dtype that nothing is converted to (kInvalidArgument), and one of a mapped file
/// (kUnsupported).
void require_convertible(const LoadOptions& options);
/// Refuses a LoadOptions::dtype where the memory that is filled says the type: kInvalidArgument.
void require_no_dtype(const LoadOptions& options);

/// Whether two entries of one storage have the same values.
bool same_view(const TensorEntry& a, const TensorEntry& b);

/// Reads a large view piece by piece and converts it to the type of `to`, which lies on the host in C order. False, and
/// nothing is done, where the view is small or no part of it can be read without the rest.
bool convert_in_pieces(const detail::ArchiveState& state, const TensorEntry& view, const Tensor& to,
                       const LoadOptions& options, Report& report, Extent extent);

/// load_tensors with options.dtype: reads and converts a part after the other. Tensors that are the same view of the
/// same bytes are one.
std::vector<Tensor> load_converted(const detail::ArchiveState& state, std::span<const TensorEntry> wanted,
                                   const LoadOptions& options, Report& report, Resident resident);

/// load_view with options.dtype.
Tensor load_view_converted(const detail::ArchiveState& state, const TensorEntry& view, const LoadOptions& options,
                           Report& report, Extent extent);

}  // namespace penstock::archive
