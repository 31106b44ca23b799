#include "call/arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "arrays/foreign.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock::python {
namespace {

/// What the value's own code raised is gone then, but for what is no Exception (KeyboardInterrupt).
[[noreturn]] void refuse(ErrorCode code, nb::handle value, const char* name, const char* expected) {
  if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_Exception) == 0) nb::raise_python_error();
  PyErr_Clear();
  throw Error(code, core::format("found {}={}, expected {}", name, shown(value), expected));
}

/// Also an element of torch's, which has an __index__: a mask of them is no list of zeros and ones.
bool is_bool(nb::handle value) {
  if (PyBool_Check(value.ptr())) return true;
  if (comes_from(value, "numpy")) return object_type(value).starts_with("numpy.bool");
  return comes_from(value, "torch") && has_attribute(value, "dtype") && shown(value.attr("dtype")) == "torch.bool";
}

std::string text_of(const ItemName& name) {
  return name.outer ? core::format("{}[{}][{}]", name.list, *name.outer, name.position)
                    : core::format("{}[{}]", name.list, name.position);
}

double number_item(nb::handle item, const ItemName& name) {
  if (PyFloat_CheckExact(item.ptr())) return PyFloat_AS_DOUBLE(item.ptr());
  const std::string text = text_of(name);
  if (is_bool(item)) refuse(ErrorCode::kDTypeMismatch, item, text.c_str(), "a number");
  return number_argument(item, text.c_str());
}

/// The argument as an array in memory with one dimension of numbers; nothing for what is gone through item by item,
/// which is also what an array is that does not hand over its memory.
std::optional<Tensor> plain_array(nb::handle values) {
  if (PyList_Check(values.ptr()) || PyTuple_Check(values.ptr()) || PyRange_Check(values.ptr())) return std::nullopt;
  try {
    std::optional<Tensor> array = array_from(values);
    const bool fits = array && array->rank() == 1 && (array->dtype().is_integer() || array->dtype().is_floating());
    return fits ? array : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return std::nullopt;
  }
}

template <class Number>
std::vector<Number> elements_of(const Tensor& array, DType dtype) {
  const Tensor values = array.to(Device{}).to(dtype).contiguous();
  const auto span = values.values<const Number>();
  return {span.begin(), span.end()};
}

template <class Number>
std::vector<Number> items_of(nb::handle values, const char* name, Number (*take)(nb::handle, const ItemName&)) {
  const nb::object iterator = nb::steal(PyUnicode_Check(values.ptr()) ? nullptr : PyObject_GetIter(values.ptr()));
  if (!iterator.is_valid()) {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0) nb::raise_python_error();
    refuse(ErrorCode::kDTypeMismatch, values, name, "an iterable of numbers");
  }
  std::vector<Number> out;
  const Py_ssize_t hint = PyObject_LengthHint(values.ptr(), 0);
  if (hint < 0) nb::raise_python_error();
  out.reserve(static_cast<std::size_t>(hint));
  for (const nb::handle item : nb::iter(iterator)) {
    out.push_back(take(item, {name, out.size()}));
    yield_at(out.size());
  }
  return out;
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
  if (PyErr_Occurred() == nullptr) return out;
  const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  refuse(is_large ? ErrorCode::kInvalidArgument : ErrorCode::kDTypeMismatch, value, name,
         is_large ? "a number that a float64 holds" : "a number");
}

double exact_number_argument(nb::handle value, const char* name) {
  const double out = number_argument(value, name);
  if (PyIndex_Check(value.ptr()) == 0) return out;
  const nb::object whole = checked(PyNumber_Index(value.ptr()));
  if (checked(PyLong_FromDouble(out)).equal(whole)) return out;
  refuse(ErrorCode::kInvalidArgument, value, name, "a number that a float64 holds, as all whole ones up to 2**53 are");
}

std::int64_t integer_item(nb::handle item, const ItemName& name) {
  if (PyLong_CheckExact(item.ptr())) {
    int overflow = 0;
    const std::int64_t out = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
    if (overflow == 0) return out;
  }
  const std::string text = text_of(name);
  if (is_bool(item)) refuse(ErrorCode::kDTypeMismatch, item, text.c_str(), "a whole number");
  return integer_argument(item, text.c_str());
}

std::optional<std::vector<std::int64_t>> integers_in_array(nb::handle values) {
  const std::optional<Tensor> array = plain_array(values);
  if (!array || !array->dtype().is_integer()) return std::nullopt;
  std::vector<std::int64_t> out = elements_of<std::int64_t>(*array, DType::int64);
  const bool is_wide = array->dtype() == DType::uint64;
  if (is_wide && std::any_of(out.begin(), out.end(), [](std::int64_t value) { return value < 0; })) return std::nullopt;
  return out;
}

std::vector<std::int64_t> integers_argument(nb::handle values, const char* name) {
  if (std::optional<std::vector<std::int64_t>> out = integers_in_array(values)) return *std::move(out);
  return items_of(values, name, integer_item);
}

std::vector<double> numbers_argument(nb::handle values, const char* name) {
  if (const std::optional<Tensor> array = plain_array(values)) return elements_of<double>(*array, DType::float64);
  return items_of(values, name, number_item);
}

Shape shape_argument(nb::handle shape) {
  const std::vector<std::int64_t> sizes =
      PyIndex_Check(shape.ptr()) ? std::vector{integer_argument(shape, "shape")} : integers_argument(shape, "shape");
  return Shape(std::span<const std::int64_t>(sizes));
}

void refuse_choice(nb::handle value, const char* name, const std::vector<const char*>& choices) {
  std::string expected;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const char* const mark = i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
    expected += core::format("{}\"{}\"", mark, choices[i]);
  }
  throw Error(ErrorCode::kInvalidArgument, core::format("found {}={}, expected {}", name, shown(value), expected));
}

bool flag_argument(nb::handle value, const char* name) {
  const bool is_flag = PyBool_Check(value.ptr()) || PyIndex_Check(value.ptr()) != 0 || comes_from(value, "numpy");
  const int out = is_flag ? PyObject_IsTrue(value.ptr()) : -1;
  if (out < 0) refuse(ErrorCode::kDTypeMismatch, value, name, "True or False");
  return out == 1;
}

}  // namespace penstock::python
