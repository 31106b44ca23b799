#include "penstock/shards.h"

#include <string>
#include <utility>

#include "bindings.h"
#include "call/arguments.h"
#include "content/functions.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"

namespace penstock::python {
namespace {

Typed<Dataset> shards_of(nb::handle given, nb::handle keys, nb::handle raw, nb::handle index) {
  const nb::object paths = kept_list(given, is_path(given));
  const nb::object names = kept_list(keys, keys.is_none() || is_key(keys));
  ShardsOptions options;
  options.keys = keys_from(names, true);
  options.raw = flag_argument(raw, "raw");
  options.index_path = index_path_from(index);
  options.index = !nb::handle(Py_False).is(index);
  options.warn = [](const std::string& message) { warn_from_anywhere("ShardWarning", message); };
  Dataset made =
      interruptible(true, [texts = paths_from(paths), options](std::stop_token) { return shards(texts, options); });
  return made_by("shards", nb::make_tuple(paths, names, raw, index), nb::cast(std::move(made)));
}

}  // namespace

void bind_shards(nb::module_& module) {
  module.def("shards", shards_of, nb::arg("shards").none(), nb::arg("keys").none(), nb::arg("raw"), nb::arg("index"));
}

}  // namespace penstock::python
