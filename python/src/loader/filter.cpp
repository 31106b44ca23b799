// Dataset.filter: a loader reads every sample, and what it keeps is a subset. Here, and not beside map, because its
// processes are those of loaders.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "content/functions.h"
#include "data/dataset/map.h"
#include "dataset/handles.h"
#include "interpreter/interrupt.h"
#include "loader/loader.h"
#include "penstock/dataset.h"
#include "worker/workers.h"

namespace penstock::python {
namespace {

/// `workers`: the processes that call it, or None.
Typed<Dataset> filter(nb::handle self, nb::handle keep, nb::handle workers, nb::handle num_workers) {
  const HeldFunction function(keep, "filter()");
  const Dataset dataset = nb::cast<Dataset>(self);
  FilterOptions options{.num_workers = workers_from(num_workers)};
  std::shared_ptr<data::Runner> runner = runner_from(workers);
  const std::vector<std::int64_t> kept = interruptible(true, [dataset, f = function.lent(), options,
                                                              runner](const std::stop_token& stop) mutable {
    options.stop = stop;
    return data::kept_indices(dataset, SampleFunction{.function = f, .tells = true}, options, runner, calls_of_python);
  });
  const nb::object indices = nb::cast(Tensor::of(std::span<const std::int64_t>(kept)));
  return made_by("subset", nb::make_tuple(self, indices), nb::cast(subset(dataset, kept)));
}

}  // namespace

void bind_filter() {
  nb::borrow<nb::class_<Dataset>>(nb::type<Dataset>())
      .def("_filter", filter, nb::arg("keep").none(), nb::arg("workers").none(), nb::arg("num_workers").none());
}

}  // namespace penstock::python
