#include "tensor/operands.h"

#include "arrays/elements.h"
#include "interpreter/convert.h"

namespace penstock::python {
namespace {

/// A scalar of NumPy's for which `item` gives a number of Python's: not dates, nor the long double, which stays one.
bool is_numpy_number(nb::handle object) {
  if (!is_numpy_scalar(object)) return false;
  const std::string_view kind = nb::borrow<nb::str>(object.attr("dtype").attr("kind")).c_str();
  return kind.find_first_of("biufc") == 0 && !comes_from(object.attr("item")(), "numpy");
}

}  // namespace

std::optional<Scalar> scalar_from(nb::handle object) {
  if (PyBool_Check(object.ptr())) return Scalar(object.is(Py_True));
  if (PyFloat_Check(object.ptr())) return Scalar(PyFloat_AS_DOUBLE(object.ptr()));
  if (PyComplex_Check(object.ptr())) {
    return Scalar(std::complex<double>(PyComplex_RealAsDouble(object.ptr()), PyComplex_ImagAsDouble(object.ptr())));
  }
  if (!PyLong_Check(object.ptr()) && !comes_from(object, "numpy")) return std::nullopt;
  if (is_numpy_number(object)) return scalar_from(object.attr("item")());
  if (PyIndex_Check(object.ptr())) {
    const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    if (!index.is_valid()) {
      PyErr_Clear();  // an array with an __index__ that only says no
      return std::nullopt;
    }
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow > 0) return Scalar(unsigned_from(index));
    return Scalar(overflow < 0 ? integer_from(index) : value);
  }
  return std::nullopt;
}

std::optional<HeldOperand> operand_from(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) return HeldOperand(nb::cast<Tensor>(object));
  if (const std::optional<Scalar> number = scalar_from(object)) return HeldOperand(*number);
  return std::nullopt;
}

std::vector<Tensor> tensors_from(nb::handle sequence) {
  std::vector<Tensor> out;
  for (const nb::handle item : nb::iter(sequence)) {
    if (!nb::isinstance<Tensor>(item)) {
      throw nb::type_error(("found a " + object_type(item) + " where a penstock.Tensor was expected").c_str());
    }
    out.push_back(nb::cast<Tensor>(item));
  }
  return out;
}

}  // namespace penstock::python
