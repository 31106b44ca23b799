#pragma once

// Nested content between Python and Value. No C recursion over depth, cycles and sharing kept. Everything here needs
// the GIL.

#include <cstddef>
#include <functional>

#include "interpreter/nanobind.h"
#include "penstock/value.h"

namespace penstock::python {

/// What a tensor that is not loaded becomes: called with the entry's position.
using EntryLeaf = std::function<nb::object(std::size_t)>;

/// What a value of a named type becomes: called with the name, the arguments (a tuple; None for a bare name) and the
/// state (None without one) of each kObject, kGlobal, kDType and torch.Size, of each tensor that has a type name or
/// state, whose only argument is what the entry became, and of each scalar of NumPy's with its value. Where a state
/// leads back to its own object, called twice: first with `...` for the state, to give the object (None where it cannot
/// be without its state: kUnsupported), and when the state is there, with what the first call gave, to give the same.
using NamedLeaf = std::function<nb::object(const std::string& name, const nb::object& arguments,
                                           const nb::object& state, const nb::object& begun)>;

/// dict, OrderedDict, list, tuple, set, numbers, strings, Tensor, DType; penstock.Opaque for what is none of these.
/// kUnsupported for keys that Python cannot hash within bounds. `entry` may be null when every tensor is loaded.
nb::object to_python(const Value& value, const EntryLeaf& entry = nullptr, const NamedLeaf& named = nullptr);

/// The reverse, for saving: also arrays of other libraries, by the protocols they speak. Overlapping arrays become
/// views of one block. kDTypeMismatch names where an object lies that is none of these. `describe`, unless null, is
/// asked first about each object that is no container, number or text, and answers one of: None; a penstock.Opaque; a
/// text, why it cannot be written (kUnsupported); or a tuple of a tensor, its type name, requires_grad, its layout and
/// its state (None or a dict). A layout is None, or the dtype to take the elements for, of the same size (None for
/// their own), and the strides.
Value from_python(nb::handle object, nb::handle describe = {});

}  // namespace penstock::python
