// Labels of files from a table.

#include "penstock/labels.h"

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "core/format.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// A label of a dict as a table has it: text, or a number of any library.
std::string label_from(nb::handle given) {
  if (PyUnicode_Check(given.ptr()) != 0) return name_from(given);
  const nb::object value = has_attribute(given, "item") ? nb::object(given.attr("item")()) : nb::borrow(given);
  if (PyUnicode_Check(value.ptr()) != 0) return name_from(value);
  if (PyIndex_Check(value.ptr()) != 0) return name_from(nb::str(checked(PyNumber_Long(value.ptr()))));
  if (PyFloat_Check(value.ptr()) != 0) return name_from(nb::str(checked(PyNumber_Float(value.ptr()))));
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("found a label of type {}, expected text or a number", object_type(given)));
}

Typed<Dataset> labelled(nb::handle given, nb::handle table, nb::handle file, nb::handle label) {
  const nb::object object = held_dataset(given);
  const Dataset dataset = nb::cast<Dataset>(object);
  const nb::object kept = PyDict_Check(table.ptr()) != 0 ? checked(PyDict_Copy(table.ptr())) : nb::borrow(table);
  const nb::tuple arguments = nb::make_tuple(object, kept, file, label);
  if (PyDict_Check(table.ptr()) != 0) {
    if (!file.is_none() || !label.is_none()) {
      throw Error(ErrorCode::kInvalidArgument, "found names of columns beside a dict, expected them beside a file");
    }
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& [name, text] : nb::borrow<nb::dict>(kept)) rows.emplace_back(path_from(name), label_from(text));
    return made_by("with_labels", arguments, nb::cast(with_labels(dataset, rows)));
  }
  const LabelOptions options{.file = file.is_none() ? "" : name_from(file),
                             .label = label.is_none() ? "" : name_from(label)};
  Dataset made = interruptible(true, [dataset, path = path_from(table), options](std::stop_token) {
    return with_labels(dataset, path, options);
  });
  return made_by("with_labels", arguments, nb::cast(std::move(made)));
}

}  // namespace

void bind_labels(nb::module_& module) {
  module.def("with_labels", labelled, nb::arg("dataset").none(), nb::arg("table").none(), nb::arg("file").none(),
             nb::arg("label").none());
}

}  // namespace penstock::python
