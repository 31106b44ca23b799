// Samples of several datasets put together: by place, by name, by templates of paths, by chance. What they are made by
// is what they pickle as; a zip that is unpickled has been warned of before.

#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "core/format.h"
#include "core/refuse.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"
#include "penstock/join.h"
#include "penstock/mix.h"

namespace penstock::python {
namespace {

/// Datasets with names or without, and the Python objects that they are.
struct Parts {
  nb::list objects;
  nb::dict named;
  std::vector<Dataset> datasets = {};
  std::vector<std::string> names = {};  ///< empty: there are none

  std::vector<std::pair<std::string, Dataset>> with_names() const {
    std::vector<std::pair<std::string, Dataset>> out;
    for (std::size_t i = 0; i < names.size(); ++i) out.emplace_back(names[i], datasets[i]);
    return out;
  }
};

Parts parts_from(nb::handle datasets, const nb::dict& named, const char* what) {
  Parts out;
  for (const nb::handle object : nb::iter(datasets)) {
    const nb::object held = counted_dataset(object);
    out.objects.append(held);
    out.datasets.push_back(nb::cast<Dataset>(held));
  }
  if (named.size() > 0 && !out.datasets.empty()) {
    core::refuse(
        core::format("found datasets with names and without in one {}; give all of them names, for dicts, or "
                     "none, for tuples",
                     what));
  }
  for (const auto& [name, object] : named) {
    const nb::object held = counted_dataset(object);
    out.named[name] = held;
    out.names.push_back(name_from(name));
    out.datasets.push_back(nb::cast<Dataset>(held));
  }
  return out;
}

/// The zip, and what it warns of.
std::pair<Dataset, std::string> zipped_parts(const Parts& parts, bool compares) {
  return interruptible(compares, [datasets = parts.datasets, named = parts.with_names(), compares](std::stop_token) {
    const auto told = std::make_shared<std::string>();
    const ZipOptions options{.compare_names = compares,
                             .warn = [told](const std::string& message) { *told = message; }};
    Dataset made = named.empty() ? zip(datasets, options) : zip(named, options);
    return std::pair(std::move(made), *told);
  });
}

/// `compares`: warns where the names of files do not pair as their places do.
Typed<Dataset> zip_parts(nb::handle datasets, const nb::dict& named, bool compares) {
  const Parts parts = parts_from(datasets, named, "zip");
  auto [made, told] = zipped_parts(parts, compares);
  if (!told.empty()) warn(nb::module_::import_("penstock.errors").attr("PairWarning"), told);
  return with_recipe("zipped", nb::make_tuple(parts.objects, parts.named), nb::cast(std::move(made)));
}

std::string text_of_match(const nb::object& match) {
  const auto groups = nb::cast<nb::tuple>(match.attr("groups")());
  if (groups.size() == 0) return name_from(match.attr("group")(0));
  if (groups.size() == 1 && PyUnicode_Check(groups[0].ptr()) != 0) return name_from(groups[0]);
  return name_from(nb::repr(groups));
}

/// What names a file: of a regular expression what it finds, else what a function gives.
std::string name_by(const nb::object& by, bool is_pattern, const std::string& path) {
  if (!is_pattern) {
    const nb::object name = by(path_text(path));
    if (PyUnicode_Check(name.ptr()) != 0) return name_from(name);
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("the function of by= gave an object of type {}, expected text", object_type(name)),
                {.path = path});
  }
  const nb::object match = by.attr("search")(path_text(path));
  if (!match.is_none()) return text_of_match(match);
  throw Error(ErrorCode::kInvalidArgument, "the regular expression of by= finds nothing in the path", {.path = path});
}

Missing missing_from(nb::handle missing) {
  return choice_argument<Missing>(missing, "missing", {{"error", Missing::kError}, {"drop", Missing::kDrop}});
}

JoinOptions join_options(nb::handle by, nb::handle missing) {
  JoinOptions out{.missing = missing_from(missing)};
  const std::string text = PyUnicode_Check(by.ptr()) != 0 ? name_from(by) : "";
  if (text == "stem") return out;
  if (text == "name" || text == "path") {
    out.by = text == "name" ? JoinBy::kName : JoinBy::kPath;
    return out;
  }
  const bool is_pattern = has_attribute(by, "search") && has_attribute(by, "groups");
  if (!is_pattern && PyCallable_Check(by.ptr()) == 0) {
    core::refuse(
        core::format("found by={}, expected \"stem\", \"name\", \"path\", a function of a path, or a regular "
                     "expression that re.compile() made",
                     shown(by)));
  }
  out.by = [by = nb::borrow(by), is_pattern](const std::string& path) { return name_by(by, is_pattern, path); };
  return out;
}

Typed<Dataset> join_parts(nb::handle datasets, const nb::dict& named, nb::handle by, nb::handle missing) {
  const Parts parts = parts_from(datasets, named, "join");
  const auto joined = [&](const JoinOptions& options) {
    return parts.names.empty() ? join(parts.datasets, options) : join(parts.with_names(), options);
  };
  const JoinOptions options = join_options(by, missing);
  // A function of the program is called in this thread, which has the lock for it.
  const bool calls = !std::holds_alternative<JoinBy>(options.by);
  Dataset made =
      calls ? joined(options)
            : interruptible(true, [of = parts.datasets, named_parts = parts.with_names(), options](std::stop_token) {
                return named_parts.empty() ? join(of, options) : join(named_parts, options);
              });
  return with_recipe("joined", nb::make_tuple(parts.objects, parts.named, by, missing), nb::cast(std::move(made)));
}

std::optional<std::vector<std::string>> raw_fields(nb::handle raw, const nb::dict& templates) {
  if (raw.is_none()) return std::nullopt;
  if (!PyBool_Check(raw.ptr())) return keys_from(raw);
  std::vector<std::string> out;
  if (raw.is(Py_True)) {
    for (const auto& [name, text] : templates) out.push_back(name_from(name));
  }
  return out;
}

Typed<Dataset> with_fields(nb::handle self, nb::handle given, nb::handle missing, nb::handle check, nb::handle raw) {
  if (PyDict_Check(given.ptr()) == 0) {
    throw Error(ErrorCode::kDTypeMismatch, core::format("found an object of type {}, expected a dict of templates by "
                                                        "field, such as {{\"image\": \"{{name}}\"}}",
                                                        object_type(given)));
  }
  const auto templates = nb::borrow<nb::dict>(given);
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [name, text] : templates) texts.emplace_back(name_from(name), path_from(text));
  const FieldsOptions options{
      .missing = missing_from(missing), .check = flag_argument(check, "check"), .raw = raw_fields(raw, templates)};
  Dataset made = interruptible(
      true, [of = nb::cast<Dataset>(self), texts, options](std::stop_token) { return fields(of, texts, options); });
  const nb::object kept = checked(PyDict_Copy(templates.ptr()));
  const nb::object fields_raw = kept_list(raw, raw.is_none() || PyBool_Check(raw.ptr()) || is_key(raw));
  return with_recipe("with_fields", nb::make_tuple(self, kept, missing, check, fields_raw), nb::cast(std::move(made)));
}

Typed<Dataset> chosen(nb::handle datasets, nb::handle weights) {
  const Parts parts = parts_from(datasets, nb::dict(), "choice");
  std::vector<double> shares;
  nb::object numbers = nb::none();
  if (!weights.is_none()) {
    shares = numbers_argument(weights, "weights");
    if (shares.empty()) core::refuse("found no weights, expected one for each dataset; leave them out for equal ones");
    numbers = list_of(shares);
  }
  return made_by("choice", nb::make_tuple(parts.objects, numbers), nb::cast(choice(parts.datasets, shares)));
}

}  // namespace

void bind_pairs(nb::module_& module) {
  module.def("zip", zip_parts, nb::arg("datasets"), nb::arg("named"), nb::arg("compares"));
  module.def("join", join_parts, nb::arg("datasets"), nb::arg("named"), nb::arg("by").none(),
             nb::arg("missing").none());
  module.def("choice", chosen, nb::arg("datasets").none(), nb::arg("weights").none());
  auto dataset = nb::borrow<nb::class_<Dataset>>(nb::type<Dataset>());
  dataset.def("_fields", with_fields, nb::arg("templates").none(), nb::arg("missing"), nb::arg("check"),
              nb::arg("raw").none());
}

}  // namespace penstock::python
