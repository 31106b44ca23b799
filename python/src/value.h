#pragma once

// Nested content between Python and Value. No C recursion over depth, cycles and sharing kept. Everything here needs
// the GIL.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <functional>

#include "penstock/value.h"

namespace nb = nanobind;

namespace penstock::python {

/// What a tensor that is not loaded becomes: called with the entry's position.
using EntryLeaf = std::function<nb::object(std::size_t)>;

/// dict, OrderedDict, list, tuple, set, numbers, strings, Tensor, DType; penstock.Opaque for what is none of these.
/// kUnsupported for keys that Python cannot hash within bounds. `entry` may be null when every tensor is loaded.
nb::object to_python(const Value& value, const EntryLeaf& entry = nullptr);

/// The reverse, for saving: also arrays of other libraries, by the protocols they speak. Overlapping arrays become
/// views of one block. kDTypeMismatch names where an object lies that is none of these.
Value from_python(nb::handle object);

}  // namespace penstock::python
