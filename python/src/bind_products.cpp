#include "bindings.h"
#include "convert.h"
#include "docstring.h"
#include "operands.h"
#include "penstock/ops.h"

namespace penstock::python {
namespace {

std::size_t bytes_of(const std::vector<Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  // What a product costs is more than what it reads.
  return computed((a.nbytes() + b.nbytes()) * 16, [=] { return matmul(a, b); });
}

nb::object multiply_operator(const Tensor& self, nb::handle other) {
  if (!nb::isinstance<Tensor>(other)) return nb::borrow(Py_NotImplemented);
  return nb::cast(multiply(self, nb::cast<Tensor>(other)));
}

using Join = Tensor (*)(std::span<const Tensor>, std::int64_t);

void bind_join(nb::module_& module, const char* name, Join join, const char* signature, const char* doc) {
  module.def(
      name,
      [join](nb::handle tensors, std::int64_t dim) {
        std::vector<Tensor> list = tensors_from(tensors);
        const std::size_t bytes = bytes_of(list);
        return computed(bytes, [join, dim, list = std::move(list)] { return join(list, dim); });
      },
      nb::arg("tensors"), nb::arg("dim") = 0, nb::sig(signature),
      docs::docstring(doc,
                      {{"tensors", "An iterable of Tensors."},
                       {"dim", "Along which dimension; negative ones count from the last."}},
                      "Tensor")
          .c_str());
}

Tensor choose(const Tensor& tensor, std::int64_t dim, const Tensor& index) {
  return computed(tensor.nbytes(), [=] { return index_select(tensor, dim, index); });
}

}  // namespace

void bind_products(nb::module_& module) {
  auto tensor = nb::borrow<nb::class_<Tensor>>(module.attr("Tensor"));
  constexpr const char* product =
      "The product of vectors, matrices or batches of them.\n\nLeading dimensions are broadcast. Both have one dtype; "
      "halves are accumulated in float32.";
  constexpr docs::Parameter second{"other", "A Tensor of the same dtype."};
  tensor.def("matmul", multiply, nb::arg("other"), nb::sig("def matmul(self, other: Tensor) -> Tensor"),
             docs::docstring(product, {second}, "Tensor").c_str());
  tensor.def("__matmul__", multiply_operator, nb::arg("other").none(),
             nb::sig("def __matmul__(self, other: Tensor, /) -> Tensor"));
  bind_join(module, "cat", cat, "def cat(tensors: typing.Iterable[Tensor], dim: int = 0) -> Tensor",
            "Tensors behind each other along a dimension, in their promoted dtype.");
  bind_join(module, "stack", stack, "def stack(tensors: typing.Iterable[Tensor], dim: int = 0) -> Tensor",
            "Tensors of one shape along a new dimension, in their promoted dtype.");
  constexpr const char* chosen = "The entries of a dimension that `index` names.";
  constexpr docs::Parameter along{"dim", "The dimension; negative ones count from the last."};
  constexpr docs::Parameter which{"index", "A vector of int32 or int64."};
  tensor.def("index_select", choose, nb::arg("dim"), nb::arg("index"),
             nb::sig("def index_select(self, dim: int, index: Tensor) -> Tensor"),
             docs::docstring(chosen, {along, which}, "Tensor").c_str());
}

}  // namespace penstock::python
