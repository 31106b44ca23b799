#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "interpreter/convert.h"
#include "penstock/ops.h"
#include "tensor/operands.h"

namespace penstock::python {
namespace {

using All = Tensor (*)(const Tensor&);
using Over = Tensor (*)(const Tensor&, std::span<const std::int64_t>, Flag);
using Along = Extremum (*)(const Tensor&, Integer, Flag);

struct SumRow {
  const char* name;
  Over call;
};

constexpr SumRow kSums[] = {{"_sum", sum}, {"_mean", mean}};

Tensor reduce(Over function, const Tensor& tensor, nb::handle dim, bool keepdim, nb::handle dtype) {
  std::vector<std::int64_t> dims;
  if (!dim.is_none())
    dims = PyIndex_Check(dim.ptr()) ? std::vector{integer_argument(dim, "dim")} : integers_argument(dim, "dim");
  if (dims.empty() && keepdim) {
    for (std::size_t d = 0; d < tensor.rank(); ++d) dims.push_back(static_cast<std::int64_t>(d));
  }
  if (dtype.is_none()) return computed(tensor.nbytes(), [=] { return function(tensor, dims, keepdim); });
  // Integers are added in int64, whose low bits are the sum in any type.
  return computed(tensor.nbytes(), [=, type = dtype_from(dtype)] {
    return function(tensor.to(type), dims, keepdim).to(type);
  });
}

/// What was made of all elements, with as many dimensions as those had where they are kept.
Tensor of_all(const Tensor& made, const Tensor& tensor, bool keepdim) {
  return keepdim ? made.reshape(Shape(std::vector<std::int64_t>(tensor.rank(), 1))) : made;
}

struct ExtremeRow {
  const char* name;
  All all;
  Along along;
};

constexpr ExtremeRow kExtremes[] = {{"_max", max, max}, {"_min", min, min}};

nb::object find_extreme(const ExtremeRow& row, const Tensor& tensor, nb::handle dim, bool keepdim) {
  if (dim.is_none()) {
    const Tensor found = computed(tensor.nbytes(), [tensor, all = row.all] { return all(tensor); });
    return nb::cast(of_all(found, tensor, keepdim));
  }
  const auto along = nb::cast<std::int64_t>(dim);
  const Extremum found =
      computed(tensor.nbytes(), [tensor, along, keepdim, call = row.along] { return call(tensor, along, keepdim); });
  return nb::module_::import_("penstock._objects.extremum").attr("Extremum")(found.values, found.indices);
}

Tensor find_argmax(const Tensor& tensor, nb::handle dim, bool keepdim) {
  if (dim.is_none()) {
    return of_all(computed(tensor.nbytes(), [tensor] { return argmax(tensor); }), tensor, keepdim);
  }
  const auto along = nb::cast<std::int64_t>(dim);
  return computed(tensor.nbytes(), [=] { return argmax(tensor, along, keepdim); });
}

}  // namespace

void bind_reductions(nb::module_& module) {
  auto tensor = nb::borrow<nb::class_<Tensor>>(module.attr("Tensor"));
  for (const SumRow& row : kSums) {
    const auto call = [function = row.call](const Tensor& input, nb::handle d, bool keep, nb::handle dtype) {
      return reduce(function, input, d, keep, dtype);
    };
    tensor.def(row.name, call, nb::arg("dim").none(), nb::arg("keepdim"), nb::arg("dtype").none());
  }
  for (const ExtremeRow& row : kExtremes) {
    const auto call = [&row](const Tensor& input, nb::handle d, bool keep) {
      return find_extreme(row, input, d, keep);
    };
    tensor.def(row.name, call, nb::arg("dim").none(), nb::arg("keepdim"));
  }
  tensor.def("_argmax", find_argmax, nb::arg("dim").none(), nb::arg("keepdim"));
}

}  // namespace penstock::python
