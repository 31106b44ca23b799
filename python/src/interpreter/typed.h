#pragma once

// Objects of Python whose class type checkers know.

#include <utility>

#include "interpreter/nanobind.h"

namespace penstock::python {

/// An object that holds a T: what binds a function that returns it says so in the stub.
template <class T>
class Typed : public nb::object {
 public:
  static constexpr auto Name = nb::detail::make_caster<T>::Name;
  using nb::object::object;
  Typed(nb::object given) : nb::object(std::move(given)) {}  // NOLINT(google-explicit-constructor)
};

}  // namespace penstock::python
