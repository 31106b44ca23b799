#pragma once

// Files without a header: penstock.raw, and the same arguments in rows() and load().

#include "content/archive.h"
#include "interpreter/nanobind.h"

namespace penstock::python {

/// The arguments that say what lies in a file without a header. `rows` and `load` have them too, where `dtype` alone
/// means what values become.
struct RawArguments {
  nb::handle dtype;
  nb::handle shape;
  nb::handle offset;
  nb::handle order;

  /// Whether one of those was given that files with a header need none of.
  bool say_headerless() const { return !shape.is_none() || !offset.is_none() || !order.is_none(); }
};

/// The array that lies in the file, or in bytes, so. `is_certain`: as the caller of penstock.raw says; else files that
/// say themselves what they hold are refused.
PyLazyTensor open_raw(nb::handle given, const RawArguments& arguments, bool is_certain);

}  // namespace penstock::python
