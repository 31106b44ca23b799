#pragma once

// nanobind, by the short name that all of the bindings have for it, and what it does not know: an Integer of an option
// is an int of Python. Without this the bindings would compile, and raise when they are called.

#include <nanobind/nanobind.h>

#include "penstock/integer.h"

namespace nb = nanobind;

namespace nanobind::detail {

template <>
struct type_caster<penstock::Integer> : type_caster<std::int64_t> {
  template <class>
  using Cast = penstock::Integer;

  static handle from_cpp(penstock::Integer number, rv_policy, cleanup_list*) noexcept {
    return PyLong_FromLongLong(std::int64_t{number});
  }
  explicit operator penstock::Integer() { return value; }
};

}  // namespace nanobind::detail
