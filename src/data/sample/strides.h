#pragma once

// The strides that torch's functions give their results, from those of their input: what a copy keeps of an order, and
// what its channels-last formats are. penstock.torch promises the same of samples, transforms and batches.

#include "penstock/shape.h"

namespace penstock::data {

/// Whether each element has a place of its own and there are no gaps between them.
bool fills_its_bytes(const Shape& shape, const Strides& strides);
/// The strides of a copy: those given where they leave no gaps, else dimensions in the same order without gaps.
Strides dense_strides(const Shape& shape, const Strides& strides);
/// Whether torch takes a tensor for one of its channels-last formats.
bool is_channels_last(const Shape& shape, const Strides& strides) noexcept;
/// Those of channels_last (4 dimensions) or channels_last_3d (5).
Strides channels_last_strides(const Shape& shape);

}  // namespace penstock::data
