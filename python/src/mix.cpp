// Parts, repetitions and mixtures of datasets.

#include "penstock/mix.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bindings_of_datasets.h"
#include "convert.h"
#include "core/format.h"
#include "data.h"
#include "docs_lengths.h"
#include "penstock/error.h"
#include "streams.h"

namespace penstock::python {
namespace {

/// What `make` gives of a dataset and a count.
nb::object counted(const char* name, Dataset (*make)(const Dataset&, std::int64_t), nb::handle given, nb::handle count,
                   const char* what) {
  if (is_stream(given)) return given.attr(name)(count);
  const nb::object dataset = held_dataset(given);
  const std::int64_t number = integer_argument(count, what);
  return made_by(name, nb::make_tuple(dataset, number), nb::cast(make(nb::cast<Dataset>(dataset), number)));
}

MixEnd end_from(nb::handle end) {
  const std::string text = PyUnicode_Check(end.ptr()) != 0 ? name_from(end) : "";
  if (text == "first") return MixEnd::kFirst;
  if (text == "all") return MixEnd::kAll;
  throw Error(ErrorCode::kInvalidArgument, core::format("found end={}, expected \"first\" or \"all\"", shown(end)));
}

nb::object mixed(nb::handle datasets, nb::handle weights, nb::handle end, nb::handle size) {
  const nb::list given{nb::borrow(datasets)};
  nb::list kept;
  std::vector<Dataset> parts;
  const bool are_streams = nb::len(given) > 0 && is_stream(given[0]);
  for (const nb::handle part : given) {
    if (are_streams) break;
    kept.append(held_dataset(part));
    parts.push_back(nb::cast<Dataset>(kept[parts.size()]));
  }
  const std::vector<double> shares = numbers_argument(weights, "weights");
  nb::list numbers;
  for (const double share : shares) numbers.append(share);
  MixOptions options{.end = end_from(end)};
  if (!size.is_none()) options.size = integer_argument(size, "size");
  if (are_streams) return mixed_streams(given, shares, options);
  return made_by("mix", nb::make_tuple(kept, numbers, end, size), nb::cast(mix(parts, shares, options)));
}

}  // namespace

void bind_mix(nb::module_& module) {
  module.def(
      "take", [](nb::handle dataset, nb::handle count) { return counted("take", take, dataset, count, "count"); },
      nb::arg("dataset").none(), nb::arg("count").none(), nb::sig("def take(dataset: Dataset, count: int) -> Dataset"),
      docs::kTake);
  module.def(
      "skip", [](nb::handle dataset, nb::handle count) { return counted("skip", skip, dataset, count, "count"); },
      nb::arg("dataset").none(), nb::arg("count").none(), nb::sig("def skip(dataset: Dataset, count: int) -> Dataset"),
      docs::kSkip);
  module.def(
      "repeat", [](nb::handle dataset, nb::handle times) { return counted("repeat", repeat, dataset, times, "times"); },
      nb::arg("dataset").none(), nb::arg("times").none(),
      nb::sig("def repeat(dataset: Dataset, times: int) -> Dataset"), docs::kRepeat);
  module.def("mix", mixed, nb::arg("datasets").none(), nb::arg("weights").none(), nb::arg("end") = "first",
             nb::arg("size") = nb::none(),
             nb::sig("def mix(datasets: typing.Iterable[Dataset], weights: typing.Iterable[float], end: str = 'first', "
                     "size: int | None = None) -> Dataset"),
             docs::kMix);
}

}  // namespace penstock::python
