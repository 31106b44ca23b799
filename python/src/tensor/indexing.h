#pragma once

// What stands between the brackets of `tensor[...]` and `entry[...]`.

#include <cstdint>
#include <vector>

#include "interpreter/nanobind.h"
#include "penstock/load.h"
#include "penstock/shape.h"
#include "penstock/tensor.h"

namespace penstock::python {

/// One step; `dim` counts the dimensions of the result so far.
struct IndexStep {
  enum class Kind : std::uint8_t { kSelect, kSlice, kNewAxis };
  Kind kind = Kind::kSelect;
  std::size_t dim = 0;
  std::int64_t start = 0;  ///< kSelect: the index
  std::int64_t stop = 0;
  std::int64_t step = 1;
};

/// Integers, slices with steps of 1 or more, one Ellipsis and None, as NumPy reads them. kIndexOutOfRange for too many
/// or other indices, kInvalidArgument for steps below 1.
std::vector<IndexStep> index_steps(nb::handle key, const Shape& shape);

Tensor index(const Tensor& tensor, nb::handle key);
/// The same without None, which a file has no room for. Reads nothing.
LazyTensor index(const LazyTensor& tensor, nb::handle key);

}  // namespace penstock::python
