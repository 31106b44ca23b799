// Arithmetic, comparisons and functions of elements for Python. Each is a row of a table, from which an operator with
// its reflection, or a method, is bound with its signature, so that none of them is left out.

#include <array>

#include "bindings.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "penstock/ops.h"
#include "tensor/operands.h"

namespace penstock::python {
namespace {

using Binary = Tensor (*)(const Operand&, const Operand&);
using Unary = Tensor (*)(const Tensor&);

struct BinaryRow {
  Binary call;
  const char* method;
  const char* reflected;  ///< the operator with a number on its left; null for comparisons, which Python turns round
  const char* method_signature;
  const char* reflected_signature;
  const char* doc;
};

// Signatures are literals because nanobind keeps the pointer.
#define PENSTOCK_METHOD(name) "def " name "(self, other: Tensor | complex, /) -> Tensor"
#define PENSTOCK_COMPARISON(name) "def " name "(self, other: object, /) -> typing.Any"

constexpr std::array kBinary = {
    BinaryRow{operator+, "__add__", "__radd__", PENSTOCK_METHOD("__add__"), PENSTOCK_METHOD("__radd__"),
              "The sum, element by element; of bool, or."},
    BinaryRow{operator-, "__sub__", "__rsub__", PENSTOCK_METHOD("__sub__"), PENSTOCK_METHOD("__rsub__"),
              "The difference, element by element."},
    BinaryRow{operator*, "__mul__", "__rmul__", PENSTOCK_METHOD("__mul__"), PENSTOCK_METHOD("__rmul__"),
              "The product, element by element; of bool, and."},
    BinaryRow{operator/, "__truediv__", "__rtruediv__", PENSTOCK_METHOD("__truediv__"), PENSTOCK_METHOD("__rtruediv__"),
              "The quotient, element by element; of integers, in float32."},
    BinaryRow{operator==, "__eq__", nullptr, PENSTOCK_COMPARISON("__eq__"), nullptr,
              "Where elements are equal, as bool."},
    BinaryRow{operator!=, "__ne__", nullptr, PENSTOCK_COMPARISON("__ne__"), nullptr, "Where elements differ, as bool."},
    BinaryRow{operator<, "__lt__", nullptr, PENSTOCK_METHOD("__lt__"), nullptr, "Where elements are less, as bool."},
    BinaryRow{operator<=, "__le__", nullptr, PENSTOCK_METHOD("__le__"), nullptr,
              "Where elements are less or equal, as bool."},
    BinaryRow{operator>, "__gt__", nullptr, PENSTOCK_METHOD("__gt__"), nullptr, "Where elements are greater, as bool."},
    BinaryRow{operator>=, "__ge__", nullptr, PENSTOCK_METHOD("__ge__"), nullptr,
              "Where elements are greater or equal, as bool."},
};

struct CompoundRow {
  Tensor& (*call)(Tensor&, const Operand&);
  const char* method;
  const char* signature;
};

constexpr std::array kCompound = {
    CompoundRow{operator+=, "__iadd__", PENSTOCK_METHOD("__iadd__")},
    CompoundRow{operator-=, "__isub__", PENSTOCK_METHOD("__isub__")},
    CompoundRow{operator*=, "__imul__", PENSTOCK_METHOD("__imul__")},
    CompoundRow{operator/=, "__itruediv__", PENSTOCK_METHOD("__itruediv__")},
};

struct UnaryRow {
  Unary call;
  const char* name;
};

constexpr std::array kUnary = {
    UnaryRow{neg, "_neg"},   UnaryRow{exp, "_exp"},   UnaryRow{log, "_log"}, UnaryRow{sqrt, "_sqrt"},
    UnaryRow{tanh, "_tanh"}, UnaryRow{relu, "_relu"}, UnaryRow{abs, "_abs"},
};

#undef PENSTOCK_METHOD
#undef PENSTOCK_COMPARISON

Tensor call(Binary function, const HeldOperand& a, const HeldOperand& b) {
  return computed(a.nbytes() + b.nbytes(), [=] { return function(a.operand(), b.operand()); });
}

Tensor call(Unary function, const Tensor& tensor) {
  return computed(tensor.nbytes(), [=] { return function(tensor); });
}

HeldOperand required(nb::handle object) {
  if (std::optional<HeldOperand> operand = operand_from(object)) return *std::move(operand);
  throw nb::type_error(
      ("found a " + object_type(object) + " where a penstock.Tensor or a number was expected").c_str());
}

/// NotImplemented for objects that are no operand, so that Python asks the other side. NumPy then makes an array.
nb::object call_operator(Binary function, const Tensor& self, nb::handle other, bool reflected) {
  const std::optional<HeldOperand> operand = operand_from(other);
  if (!operand) return nb::borrow(Py_NotImplemented);
  const HeldOperand tensor(self);
  return nb::cast(reflected ? call(function, *operand, tensor) : call(function, tensor, *operand));
}

/// Where both sides know nothing of each other, Python itself says that objects differ, as one value.
void require_comparable(nb::handle other) {
  if (nb::isinstance<Tensor>(other) || comes_from(other, "numpy") || !has_attribute(other, "__dlpack__")) return;
  throw nb::type_error(core::format("found a {} beside a penstock.Tensor: compare it with penstock.asarray() of it",
                                    object_type(other))
                           .c_str());
}

void bind_binary(nb::class_<Tensor>& tensor, const BinaryRow& row) {
  const Binary function = row.call;
  tensor.def(
      row.method,
      [function](const Tensor& self, nb::handle other) {
        if (function == static_cast<Binary>(operator==) || function == static_cast<Binary>(operator!=)) {
          require_comparable(other);
        }
        return call_operator(function, self, other, false);
      },
      nb::arg("other").none(), nb::sig(row.method_signature), row.doc);
  if (row.reflected == nullptr) return;
  tensor.def(
      row.reflected,
      [function](const Tensor& self, nb::handle other) { return call_operator(function, self, other, true); },
      nb::arg("other").none(), nb::sig(row.reflected_signature), row.doc);
}

/// Gives `self` back, because Python assigns the result of `a += b` to a.
void bind_compound(nb::class_<Tensor>& tensor, const CompoundRow& row) {
  tensor.def(
      row.method,
      [function = row.call](nb::handle self, nb::handle other) -> nb::object {
        // Not NotImplemented: `t += array` would make t an array of NumPy's, and leave the memory as it was.
        const HeldOperand operand = required(other);
        Tensor held = nb::cast<const Tensor&>(self);
        computed(held.nbytes() + operand.nbytes(), [&] { return function(held, operand.operand()); });
        return nb::borrow(self);
      },
      nb::arg("other").none(), nb::sig(row.signature),
      "In place: the memory is changed, for every view of it; dtype and shape stay.");
}

void bind_unary(nb::class_<Tensor>& tensor, const UnaryRow& row) {
  const Unary function = row.call;
  tensor.def(row.name, [function](const Tensor& self) { return call(function, self); });
}

}  // namespace

void bind_elementwise(nb::module_& module) {
  auto tensor = nb::borrow<nb::class_<Tensor>>(module.attr("Tensor"));
  for (const BinaryRow& row : kBinary) bind_binary(tensor, row);
  for (const CompoundRow& row : kCompound) bind_compound(tensor, row);
  for (const UnaryRow& row : kUnary) bind_unary(tensor, row);
  tensor.def("__neg__", [](const Tensor& self) { return call(static_cast<Unary>(neg), self); });
  tensor.def("__abs__", [](const Tensor& self) { return call(static_cast<Unary>(abs), self); });
  // Equality is of elements, so that only the object itself can be a key.
  tensor.def("__hash__",
             [](nb::handle self) { return static_cast<Py_ssize_t>(PyBaseObject_Type.tp_hash(self.ptr())); });
  module.def(
      "promote_types",
      [](nb::handle a, nb::handle b) { return promote_types(dtype_from(a, "type1"), dtype_from(b, "type2")); },
      nb::arg("type1"), nb::arg("type2"));
  module.def(
      "result_type",
      [](nb::handle a, nb::handle b) { return result_type(required(a).operand(), required(b).operand()); },
      nb::arg("tensor1"), nb::arg("tensor2"));
}

}  // namespace penstock::python
