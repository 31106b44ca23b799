#include <string>
#include <vector>

#include "arguments.h"
#include "bindings.h"
#include "convert.h"
#include "docstring.h"
#include "operands.h"
#include "penstock/ops.h"

namespace penstock::python {
namespace {

using All = Tensor (*)(const Tensor&);
using Over = Tensor (*)(const Tensor&, std::span<const std::int64_t>, Flag);
using Along = Extremum (*)(const Tensor&, std::int64_t, Flag);

struct SumRow {
  const char* name;
  Over call;
  const char* signature;
  const char* doc;
};

constexpr SumRow kSums[] = {
    {"sum", sum,
     "def sum(self, dim: int | typing.Iterable[int] | None = None, keepdim: bool = False, *, dtype: object = None) -> "
     "Tensor",
     "The sum over dimensions.\n\nOf integers and bool it is int64. The order of summation is fixed: the same bits on "
     "every "
     "device."},
    {"mean", mean,
     "def mean(self, dim: int | typing.Iterable[int] | None = None, keepdim: bool = False, *, dtype: object = None) -> "
     "Tensor",
     "The mean over dimensions, of floats and complex numbers."},
};

Tensor reduce(Over function, const Tensor& tensor, nb::handle dim, bool keepdim, nb::handle dtype) {
  std::vector<std::int64_t> dims;
  if (!dim.is_none())
    dims = PyIndex_Check(dim.ptr()) ? std::vector{integer_argument(dim, "dim")} : integers_argument(dim, "dim");
  if (dims.empty() && keepdim) {
    for (std::size_t d = 0; d < tensor.rank(); ++d) dims.push_back(static_cast<std::int64_t>(d));
  }
  const DType type = dtype.is_none() ? tensor.dtype() : dtype_from(dtype);
  return computed(tensor.nbytes(), [=] { return function(tensor.to(type), dims, keepdim); });
}

struct ExtremeRow {
  const char* name;
  All all;
  Along along;
  const char* signature;
  const char* doc;
};

constexpr ExtremeRow kExtremes[] = {
    {"max", max, max, "def max(self, dim: int | None = None, keepdim: bool = False) -> typing.Any",
     "The greatest element; along a dimension, the pair (values, indices).\n\nNaN counts as the greatest."},
    {"min", min, min, "def min(self, dim: int | None = None, keepdim: bool = False) -> typing.Any",
     "The least element; along a dimension, the pair (values, indices).\n\nNaN counts as the least."},
};

nb::object find_extreme(const ExtremeRow& row, const Tensor& tensor, nb::handle dim, bool keepdim) {
  if (dim.is_none()) {
    return nb::cast(computed(tensor.nbytes(), [tensor, all = row.all] { return all(tensor); }));
  }
  const auto along = nb::cast<std::int64_t>(dim);
  const Extremum found =
      computed(tensor.nbytes(), [tensor, along, keepdim, call = row.along] { return call(tensor, along, keepdim); });
  return nb::module_::import_("penstock._extremum").attr("Extremum")(found.values, found.indices);
}

Tensor find_argmax(const Tensor& tensor, nb::handle dim, bool keepdim) {
  if (dim.is_none()) {
    const Tensor index = computed(tensor.nbytes(), [tensor] { return argmax(tensor); });
    return keepdim ? index.reshape(Shape(std::vector<std::int64_t>(tensor.rank(), 1))) : index;
  }
  const auto along = nb::cast<std::int64_t>(dim);
  return computed(tensor.nbytes(), [=] { return argmax(tensor, along, keepdim); });
}

std::string extreme_docs(const char* summary, const char* returns) {
  return docs::docstring(summary, {docs::kOneDim, docs::kKeepdim}, returns);
}

}  // namespace

void bind_reductions(nb::module_& module) {
  auto tensor = nb::borrow<nb::class_<Tensor>>(module.attr("Tensor"));
  const auto dim = nb::arg("dim").none() = nb::none();
  const auto keepdim = nb::arg("keepdim") = false;
  for (const SumRow& row : kSums) {
    const auto call = [function = row.call](const Tensor& input, nb::handle d, bool keep, nb::handle dtype) {
      return reduce(function, input, d, keep, dtype);
    };
    tensor.def(row.name, call, dim, keepdim, nb::kw_only(), nb::arg("dtype") = nb::none(), nb::sig(row.signature),
               docs::docstring(row.doc, {docs::kDims, docs::kKeepdim, docs::kSumType}, "Tensor").c_str());
  }
  for (const ExtremeRow& row : kExtremes) {
    const auto call = [&row](const Tensor& input, nb::handle d, bool keep) {
      return find_extreme(row, input, d, keep);
    };
    tensor.def(row.name, call, dim, keepdim, nb::sig(row.signature),
               extreme_docs(row.doc, "Tensor, or Extremum").c_str());
  }
  tensor.def("argmax", find_argmax, dim, keepdim,
             nb::sig("def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor"),
             extreme_docs("The index of the greatest element in C order, or along a dimension.\n\nOf equal ones it is "
                          "that of the first.",
                          "Tensor")
                 .c_str());
}

}  // namespace penstock::python
