// What the package asks before it does what Python alone can do: checks, and tables that C++ has.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "content/functions.h"
#include "core/forks.h"
#include "core/system_error.h"
#include "data/files/class_folders.h"
#include "data/loader/dealing.h"
#include "data/loader/resumed_batch.h"
#include "data/pack/choose_place.h"
#include "data/sampler/rank_sources.h"
#include "format/safetensors/dtype.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "loader/loader.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// [(our name, the format's, values in an element)]
std::vector<std::tuple<std::string, std::string, unsigned>> safetensors_table() {
  std::vector<std::tuple<std::string, std::string, unsigned>> out;
  for (const format::SafetensorsDType& row : format::safetensors_dtypes()) {
    out.emplace_back(DType(row.code).name(), row.name, row.packed);
  }
  return out;
}

Anything error_of_system(int number, const std::string& what, nb::handle path) {
  try {
    core::throw_errno(number, what, {.path = path_from(path)});
  } catch (const Error& error) {
    return exception_of(error);
  }
}

TupleOf<ListOf<nb::str>, ListOf<int>> classes_and_numbers(const Dataset& files) {
  data::ClassFolders found = data::class_folders(files);
  return nb::make_tuple(list_of(found.classes, path_text), nb::cast(found.numbers));
}

void require_nothing_at(nb::handle path) {
  interruptible(true, [place = path_from(path)](std::stop_token) { data::require_new_place(place); });
}

void require_rank_of(nb::handle rank, nb::handle size, const std::string& source) {
  data::require_ranks(
      {.rank = integer_argument(rank, "rank"), .size = integer_argument(size, "size"), .source = source});
}

/// (batch, samples, batch_size, num_replicas, batches, order, dataset)
LoaderPosition position_of(const nb::tuple& fields) {
  return {.batch = integer_from(fields[0]),
          .samples = integer_from(fields[1]),
          .batch_size = integer_from(fields[2]),
          .num_replicas = integer_from(fields[3]),
          .batches = integer_from(fields[4]),
          .order = name_from(fields[5]),
          .dataset = name_from(fields[6])};
}

std::optional<std::uint64_t> require_loader_options(nb::handle ranks, nb::handle remainder, nb::handle on_error,
                                                    bool drop_last, nb::handle memory_budget) {
  LoaderOptions options{.drop_last = drop_last};
  options.ranks = ranks_from(ranks);
  options.remainder = remainder_from(remainder);
  options.on_error = on_error_from(on_error);
  data::require_dealing(options);
  if (memory_budget.is_none()) return {};
  return count_argument(memory_budget, "memory_budget");
}

void call_or_stop(const nb::callable& function) {
  {
    const Running running;
    if (!Running::is_ending()) {
      function();
      return;
    }
  }
  PyEval_SaveThread();
  stop_thread();
}

}  // namespace

void bind_checks(nb::module_& module) {
  module.def("_forks", core::forks, "How many forks lead to this process.");
  module.def("_require_own_process", core::require_own_process, nb::arg("forks"));
  module.def("_is_ending", Running::is_ending, "Whether the interpreter has begun to end.");
  module.def(
      "_call_or_stop", call_or_stop, nb::arg("function"),
      "Calls it, and the interpreter's end waits for that; where that has begun, the daemon thread stops for good.");
  module.def("_require_ranks", require_rank_of, nb::arg("rank").none(), nb::arg("size").none(), nb::arg("source"));
  module.def("_class_folders", classes_and_numbers, nb::arg("files"));
  module.def("_require_new_place", require_nothing_at, nb::arg("path"));
  module.def("_is_of_surroundings", is_of_surroundings, nb::arg("error"));
  module.def("_outage", outage_of, nb::arg("error"), nb::arg("in_a_row"));
  module.def("_why_set_aside", why_set_aside, nb::arg("error"), nb::arg("dataset"), nb::arg("index"));
  module.def("_safetensors_dtypes", safetensors_table);
  module.def(
      "_resumed_batch",
      [](const nb::tuple& position, const nb::tuple& own, std::optional<std::int64_t> batches) {
        return data::resumed_batch(position_of(position), position_of(own), batches);
      },
      nb::arg("position"), nb::arg("own"), nb::arg("batches").none());
  module.def("_require_loader_options", require_loader_options, nb::arg("ranks").none(), nb::arg("remainder").none(),
             nb::arg("on_error").none(), nb::arg("drop_last"), nb::arg("memory_budget").none());
  module.def(
      "_require_undealt",
      [](std::int64_t dealt, nb::handle ranks) { data::require_undealt(dealt, ranks_from(ranks).value()); },
      nb::arg("dealt"), nb::arg("ranks"));
  module.def(
      "_require_share",
      [](std::int64_t total, nb::handle ranks, nb::handle remainder, bool batches) {
        data::require_share(total, ranks_from(ranks).value(), remainder_from(remainder),
                            batches ? data::Dealt::kBatches : data::Dealt::kSamples);
      },
      nb::arg("total"), nb::arg("ranks"), nb::arg("remainder"), nb::arg("batches"));
  module.def("_system_error", error_of_system, nb::arg("number"), nb::arg("what"), nb::arg("path"));
}

}  // namespace penstock::python
