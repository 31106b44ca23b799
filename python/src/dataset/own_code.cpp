// Datasets and transforms of the program's own code. Each of their Python objects holds the keepers of its functions.

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "content/functions.h"
#include "content/value.h"
#include "core/format.h"
#include "data/dataset/map.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

nb::object with_keeper(nb::object dataset, const HeldFunction& function) {
  nb::setattr(dataset, "_function", function.keeper());
  return dataset;
}

nb::object of_function(nb::handle size, nb::handle get) {
  const HeldFunction function(get, "dataset()");
  const std::int64_t samples = integer_argument(size, "size");
  Dataset made = detail::dataset_of(samples, SampleMaker{function.lent()});
  return with_keeper(made_by("dataset", nb::make_tuple(samples, get), nb::cast(std::move(made))), function);
}

nb::object of_values(nb::handle items) {
  const bool has_items = has_attribute(items, "__iter__") || has_attribute(items, "__getitem__");
  if (!has_items || PyUnicode_Check(items.ptr()) != 0 || PyBytes_Check(items.ptr()) != 0 ||
      PyDict_Check(items.ptr()) != 0) {
    throw Error(ErrorCode::kDTypeMismatch, core::format("found an object of type {} where dataset() takes a list of "
                                                        "samples, or a size and a function",
                                                        object_type(items)));
  }
  const nb::list kept{nb::borrow(items)};
  std::vector<Value> values;
  for (const nb::handle item : kept) {
    values.push_back(from_python(item));
    yield_at(values.size());
  }
  return made_by("dataset", nb::make_tuple(kept), nb::cast(dataset(std::move(values))));
}

/// Whether it is a dataset of another library (torch's, Hugging Face's), which reads a sample when it is asked for it.
/// Arrays and Python's own containers have theirs in memory.
bool reads_on_demand(nb::handle object) {
  if (!has_attribute(object, "__getitem__") || !has_attribute(object, "__len__") || has_dimensions(object))
    return false;
  const std::string module = nb::cast<std::string>(nb::str(object.type().attr("__module__")));
  return PyList_Check(object.ptr()) == 0 && PyTuple_Check(object.ptr()) == 0 && PyDict_Check(object.ptr()) == 0 &&
         module != "builtins" && module != "collections" && module != "array";
}

Typed<Dataset> made_dataset(nb::handle first, nb::handle function) {
  if (!function.is_none()) return of_function(first, function);
  if (has_dataset(first) || is_stream(first)) return held_dataset(first);
  if (reads_on_demand(first)) return of_function(nb::int_(nb::len(first)), first.attr("__getitem__"));
  return of_values(first);
}

Typed<Dataset> map(nb::handle self, nb::handle given, nb::handle batched, nb::handle seeded) {
  const HeldFunction function(given, "map()");
  const bool random = flag_argument(seeded, "seeded");
  const bool of_batches = flag_argument(batched, "batched");
  Dataset made = data::mapped(nb::cast<const Dataset&>(self), SampleFunction{function.lent(), random},
                              of_batches ? data::Of::kBatches : data::Of::kSamples, random, calls_of_python);
  nb::object out = with_recipe("mapped", nb::make_tuple(self, given, of_batches, random), nb::cast(std::move(made)));
  return with_keeper(std::move(out), function);
}

}  // namespace

void bind_own_code(nb::module_& module) {
  auto dataset = nb::borrow<nb::class_<Dataset>>(nb::type<Dataset>());
  dataset.def("_map", map, nb::arg("function").none(), nb::arg("batched"), nb::arg("seeded"));
  module.def("dataset", made_dataset, nb::arg("samples").none(), nb::arg("get").none());
}

}  // namespace penstock::python
