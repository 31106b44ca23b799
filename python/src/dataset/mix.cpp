// Parts and repetitions of datasets, which are methods, and mixtures.

#include "penstock/mix.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "core/format.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

using Counted = Dataset (*)(const Dataset&, Integer);

/// What `make`, which is the method `name`, gives of a dataset and a count.
Typed<Dataset> counted(const char* name, Counted make, nb::handle self, nb::handle count, const char* what) {
  const std::int64_t number = integer_argument(count, what);
  return with_recipe("transformed", nb::make_tuple(self, name, nb::make_tuple(number)),
                     nb::cast(make(nb::cast<const Dataset&>(self), number)));
}

nb::object mixed(nb::handle datasets, nb::handle weights, nb::handle end, nb::handle size) {
  const nb::list given{nb::borrow(datasets)};
  nb::list kept;
  std::vector<Dataset> parts;
  const bool are_streams = nb::len(given) > 0 && is_stream(given[0]);
  for (const nb::handle part : given) {
    if (are_streams) break;
    kept.append(counted_dataset(part));
    parts.push_back(nb::cast<Dataset>(kept[parts.size()]));
  }
  const std::vector<double> shares = numbers_argument(weights, "weights");
  const nb::list numbers = list_of(shares);
  MixOptions options{.end = choice_argument<MixEnd>(end, "end", {{"first", MixEnd::kFirst}, {"all", MixEnd::kAll}})};
  if (!size.is_none()) options.size = integer_argument(size, "size");
  if (are_streams) return mixed_streams(given, shares, options);
  return made_by("mix", nb::make_tuple(kept, numbers, end, size), nb::cast(mix(parts, shares, options)));
}

}  // namespace

void bind_mix(nb::module_& module) {
  auto dataset = nb::borrow<nb::class_<Dataset>>(nb::type<Dataset>());
  dataset
      .def(
          "_take", [](nb::handle self, nb::handle count) { return counted("take", take, self, count, "count"); },
          nb::arg("count").none())
      .def(
          "_skip", [](nb::handle self, nb::handle count) { return counted("skip", skip, self, count, "count"); },
          nb::arg("count").none())
      .def(
          "_repeat", [](nb::handle self, nb::handle times) { return counted("repeat", repeat, self, times, "times"); },
          nb::arg("times").none());
  module.def("mix", mixed, nb::arg("datasets").none(), nb::arg("weights").none(), nb::arg("end"),
             nb::arg("size").none());
}

}  // namespace penstock::python
