#pragma once

// What bound functions give, in types that the stub shows to type checkers.

#include <nanobind/stl/optional.h>

#include <cstdint>

#include "interpreter/nanobind.h"

namespace penstock::python {

/// An object that holds a T, or `std::optional` of one.
template <class T>
using Typed = nb::typed<nb::object, T>;
using Anything = Typed<nb::any>;

using Sizes = nb::typed<nb::tuple, std::int64_t, nb::ellipsis>;
template <class T>
using ListOf = nb::typed<nb::list, T>;
template <class T>
using IteratorOf = nb::typed<nb::iterator, T>;
template <class... Parts>
using TupleOf = nb::typed<nb::tuple, Parts...>;

/// `__enter__`, `__copy__` and the like, which give the object itself.
template <class T>
Typed<T> itself(nb::handle self) {
  return nb::borrow(self);
}

}  // namespace penstock::python
