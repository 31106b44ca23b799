#include "penstock/shards.h"

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "content/functions.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"

namespace penstock::python {
namespace {

Typed<Dataset> shards_of(nb::handle given, nb::handle keys, nb::handle raw, nb::handle index) {
  const nb::object paths = is_path(given) ? nb::borrow(given) : nb::object(nb::list(nb::borrow(given)));
  const nb::object names = keys.is_none() || is_key(keys) ? nb::borrow(keys) : nb::object(nb::list(nb::borrow(keys)));
  ShardsOptions options;
  options.keys = keys_from(names, true);
  options.raw = flag_argument(raw, "raw");
  options.index = PyBool_Check(index.ptr()) ? nb::cast<bool>(index) : true;
  if (!PyBool_Check(index.ptr())) options.index_path = path_from(index);
  options.warn = [](const std::string& message) { warn_from_anywhere("ShardWarning", message); };
  std::vector<std::string> texts;
  if (is_path(paths)) texts.push_back(path_from(paths));
  if (!is_path(paths)) {
    for (const nb::handle path : nb::iter(paths)) texts.push_back(path_from(path));
  }
  Dataset made = interruptible(true, [texts, options](std::stop_token) { return shards(texts, options); });
  return made_by("shards", nb::make_tuple(paths, names, raw, index), nb::cast(std::move(made)));
}

}  // namespace

void bind_shards(nb::module_& module) {
  module.def("shards", shards_of, nb::arg("shards").none(), nb::arg("keys").none(), nb::arg("raw"), nb::arg("index"));
}

}  // namespace penstock::python
