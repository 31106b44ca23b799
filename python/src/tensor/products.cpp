#include "bindings.h"
#include "interpreter/convert.h"
#include "penstock/ops.h"
#include "tensor/operands.h"

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

Typed<Tensor> multiply_operator(const Tensor& self, nb::handle other) {
  if (!nb::isinstance<Tensor>(other)) return nb::borrow(Py_NotImplemented);
  return nb::cast(multiply(self, nb::cast<Tensor>(other)));
}

using Join = Tensor (*)(std::span<const Tensor>, Integer);

void bind_join(nb::module_& module, const char* name, Join join) {
  module.def(
      name,
      [join](nb::handle tensors, std::int64_t dim) {
        std::vector<Tensor> list = tensors_from(tensors);
        const std::size_t bytes = bytes_of(list);
        return computed(bytes, [join, dim, list = std::move(list)] { return join(list, dim); });
      },
      nb::arg("tensors"), nb::arg("dim"));
}

Tensor choose(const Tensor& tensor, std::int64_t dim, const Tensor& index) {
  return computed(tensor.nbytes(), [=] { return index_select(tensor, dim, index); });
}

}  // namespace

void bind_products(nb::module_& module) {
  auto tensor = nb::borrow<nb::class_<Tensor>>(module.attr("Tensor"));
  tensor.def("_matmul", multiply, nb::arg("other"));
  tensor.def("__matmul__", multiply_operator, nb::arg("other").none());
  tensor.def("_index_select", choose, nb::arg("dim"), nb::arg("index"));
  bind_join(module, "cat", cat);
  bind_join(module, "stack", stack);
}

}  // namespace penstock::python
