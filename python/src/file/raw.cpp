// penstock.raw: arrays in files without a header.

#include "file/raw.h"

#include <string>
#include <utility>

#include "archive/raw.h"
#include "bindings.h"
#include "call/arguments.h"
#include "content/contents.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "io/locations.h"
#include "penstock/raw.h"

namespace penstock::python {
namespace {

using archive::StoredType;

/// What NumPy makes a type of structures of: a list of fields, or a type of its own.
bool has_fields(nb::handle dtype) {
  return PyList_Check(dtype.ptr()) != 0 ||
         (PyType_Check(dtype.ptr()) == 0 && comes_from(dtype, "numpy") && !attribute_or(dtype, "names").is_none());
}

StoredType structure(nb::handle given) {
  const nb::object dtype = nb::module_::import_("numpy").attr("dtype")(given);
  if (nb::cast<bool>(dtype.attr("hasobject"))) {
    throw Error(ErrorCode::kUnsafe, "found a type with Python objects, which only a pickle could hold");
  }
  const nb::object descr = nb::module_::import_("numpy.lib.format").attr("dtype_to_descr")(dtype);
  const auto itemsize = nb::cast<std::size_t>(dtype.attr("itemsize"));
  return {DType::with_descr(DType::Code::kStructured, itemsize, nb::repr(descr).c_str())};
}

/// The type and its byte order: names, types of other libraries, and NumPy's texts such as ">u2".
StoredType stored_type(nb::handle given) {
  if (given.is_none()) {
    throw Error(ErrorCode::kInvalidArgument,
                "found no dtype; a file without a header does not say what its elements are, so say it, such as "
                "dtype=\"uint16\"");
  }
  if (has_fields(given)) return structure(given);
  if (const std::optional<DType> named = try_dtype_from(given)) return {*named};
  const nb::object text = PyUnicode_Check(given.ptr()) != 0 ? nb::borrow(given) : attribute_or(given, "str");
  if (PyUnicode_Check(text.ptr()) == 0) return {dtype_from(given)};
  if (const auto known = archive::stored_type(name_from(text))) return *known;
  return {dtype_from(given)};  // says what to write
}

bool is_fortran(nb::handle order) {
  const std::string text = order.is_none() ? "C" : name_from(order);
  if (text == "C" || text == "F") return text == "F";
  throw Error(ErrorCode::kInvalidArgument, core::format("found order={}, expected \"C\" or \"F\"", shown(order)));
}

RawLayout layout_of(const RawArguments& arguments) {
  const StoredType type = stored_type(arguments.dtype);
  RawLayout out{.dtype = type.dtype, .byte_order = type.byte_order};
  if (!arguments.shape.is_none()) out.shape = shape_argument(arguments.shape);
  if (!arguments.offset.is_none()) out.offset = count_argument(arguments.offset, "offset");
  out.fortran_order = is_fortran(arguments.order);
  return out;
}

}  // namespace

PyLazyTensor open_raw(nb::handle given, const RawArguments& arguments, bool is_certain) {
  const RawLayout layout = layout_of(arguments);
  const Source source = source_given(given, [](const std::string& path) { return open_source(path); });
  const bool is_long = io::waits_for_server(source.name());
  LazyTensor tensor = interruptible(is_long, [source, layout, is_certain](std::stop_token) {
    return is_certain ? raw(source, layout) : archive::headerless(source, layout);
  });
  const nb::tuple made = nb::make_tuple(arguments.dtype, tuple_of(layout.shape), layout.offset,
                                        text_from(layout.fortran_order ? "F" : "C"));
  return {std::move(tensor), true, nb::tuple(), made};
}

void bind_raw(nb::module_& module) {
  module.def(
      "raw",
      [](nb::handle path, nb::handle dtype, nb::handle shape, nb::handle offset, nb::handle order) {
        return open_raw(path, {dtype, shape, offset, order}, true);
      },
      nb::arg("path").none(), nb::arg("dtype").none(), nb::arg("shape").none(), nb::arg("offset"), nb::arg("order"));
}

}  // namespace penstock::python
