#include "arguments.h"

#include "convert.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

[[noreturn]] void refuse(ErrorCode code, nb::handle value, const char* name, const char* expected) {
  PyErr_Clear();
  throw Error(code, core::format("found {}={}, expected {}", name, shown(value), expected));
}

nb::object whole_number(nb::handle value, const char* name) {
  nb::object number = nb::steal(PyIndex_Check(value.ptr()) != 0 ? PyNumber_Index(value.ptr()) : nullptr);
  if (!number.is_valid()) refuse(ErrorCode::kDTypeMismatch, value, name, "a whole number");
  return number;
}

}  // namespace

std::int64_t integer_argument(nb::handle value, const char* name) {
  const std::int64_t out = PyLong_AsLongLong(whole_number(value, name).ptr());
  if (out == -1 && PyErr_Occurred() != nullptr) {
    refuse(ErrorCode::kInvalidArgument, value, name, "a number of at most 63 bits");
  }
  return out;
}

std::uint64_t count_argument(nb::handle value, const char* name) {
  const std::uint64_t out = PyLong_AsUnsignedLongLong(whole_number(value, name).ptr());
  if (PyErr_Occurred() != nullptr) refuse(ErrorCode::kInvalidArgument, value, name, "0 or more, of at most 64 bits");
  return out;
}

double number_argument(nb::handle value, const char* name) {
  const double out = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() != nullptr) refuse(ErrorCode::kDTypeMismatch, value, name, "a number");
  return out;
}

bool flag_argument(nb::handle value, const char* name) {
  const bool is_flag = PyBool_Check(value.ptr()) || PyIndex_Check(value.ptr()) != 0 || comes_from(value, "numpy");
  const int out = is_flag ? PyObject_IsTrue(value.ptr()) : -1;
  if (out < 0) refuse(ErrorCode::kDTypeMismatch, value, name, "True or False");
  return out == 1;
}

}  // namespace penstock::python
