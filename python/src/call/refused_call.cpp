// Python's own errors and nanobind's do not say which argument was of a wrong type ("'float' object is not iterable",
// or the whole signature in C++'s order). All errors of compiled functions pass one of two functions of nanobind: the
// one that sets a text, and the one that sets an exception which Python raised below. Its sources are compiled so that
// both are ours (CMakeLists.txt). penstock/_wrong_argument.py then looks at the function in penstock/_api that made the
// call: its annotations say what each argument may be. This costs nothing where arguments fit.

#include "call/refused_call.h"

#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "bindings.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// In nanobind's text, behind the function's name.
constexpr std::string_view kRefused = "(): incompatible function arguments.";
/// What a cast throws that a compiled function makes of an argument.
constexpr std::string_view kBadCast = "std::bad_cast";

/// Whether the exception may be about the type of an argument.
bool may_be_of_argument(PyObject* type) {
  return type != nullptr && (PyErr_GivenExceptionMatches(type, PyExc_TypeError) != 0 ||
                             PyErr_GivenExceptionMatches(type, PyExc_ValueError) != 0 ||
                             PyErr_GivenExceptionMatches(type, PyExc_AttributeError) != 0);
}

/// The error in place of the one that has this text; nothing where no other is due.
bool set_other_error(const char* text, ErrorBy by) {
  try {
    const std::string sentence = naming_argument(text, by);
    if (sentence == text) return false;
    set_python_error(Error(ErrorCode::kDTypeMismatch, sentence));
    return true;
  } catch (const std::exception&) {  // at the end of the interpreter, where nothing can be imported
    PyErr_Clear();
    return false;
  }
}

}  // namespace

std::string naming_argument(const char* text, ErrorBy by) {
  constexpr std::array kNames = {"nanobind", "penstock", "python"};
  PyObject* const frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  const nb::object here = frame == nullptr ? nb::none() : nb::borrow(frame);
  const nb::object say = nb::module_::import_("penstock._wrong_argument").attr("sentence");
  return nb::cast<std::string>(say(text, here, kNames[static_cast<std::size_t>(by)]));
}

}  // namespace penstock::python

/// In place of PyErr_SetString in nanobind's sources.
extern "C" void penstock_set_error(PyObject* type, const char* text) {
  namespace python = penstock::python;
  const std::string_view said(text);
  const bool refused = said.find(python::kRefused) != std::string_view::npos || said == python::kBadCast;
  const bool other = (refused || python::may_be_of_argument(type)) &&
                     python::set_other_error(text, refused ? python::ErrorBy::kNanobind : python::ErrorBy::kPenstock);
  if (!other) PyErr_SetString(type, text);
}

namespace {

/// Whether another error is set in place of this one, which Python raised below a compiled function.
bool set_other_error_for(PyObject* type, PyObject* value) noexcept {
  if (value == nullptr || !penstock::python::may_be_of_argument(type)) return false;
  const nb::object text = nb::steal(PyObject_Str(value));
  const char* const said = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
  if (said != nullptr && penstock::python::set_other_error(said, penstock::python::ErrorBy::kPython)) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

#if PY_VERSION_HEX >= 0x030C0000
/// In place of PyErr_SetRaisedException there.
extern "C" void penstock_raise(PyObject* value) {
  if (set_other_error_for(value == nullptr ? nullptr : reinterpret_cast<PyObject*>(Py_TYPE(value)), value)) {
    Py_DECREF(value);
  } else {
    PyErr_SetRaisedException(value);
  }
}
#else
/// In place of PyErr_Restore there.
extern "C" void penstock_raise(PyObject* type, PyObject* value, PyObject* traceback) {
  if (set_other_error_for(type, value)) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  } else {
    PyErr_Restore(type, value, traceback);
  }
}
#endif
