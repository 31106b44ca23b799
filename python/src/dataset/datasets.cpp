// Datasets for Python. Each keeps its recipe, which is the function and the arguments that made it, because that is
// what a pickle carries to another process in place of the samples.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arrays/foreign.h"
#include "bindings.h"
#include "call/arguments.h"
#include "call/progress.h"
#include "content/archive.h"
#include "content/value.h"
#include "core/counted.h"
#include "core/format.h"
#include "data/dataset_impl.h"
#include "data/read_sample.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/collate.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/pack.h"
#include "penstock/promote.h"
#include "penstock/sample_stream.h"

namespace penstock::python {
namespace {

/// Under which name a dataset or collation keeps what it is unpickled by.
constexpr const char* kRecipe = "_recipe";

/// What datasets of other classes have that hold one of ours: it gives that, or says why it cannot.
constexpr const char* kHeld = "__penstock_dataset__";

Dataset dataset_from(nb::handle object) { return nb::cast<Dataset>(counted_dataset(object)); }

nb::tuple held_datasets(const nb::args& objects) { return nb::tuple(list_of(objects, counted_dataset)); }

std::vector<Dataset> datasets_from(const nb::tuple& objects) {
  std::vector<Dataset> out;
  for (const nb::handle object : objects) out.push_back(nb::cast<Dataset>(object));
  return out;
}

Typed<Dataset> concat_with(nb::handle self, const nb::args& others) {
  const nb::tuple parts = held_datasets(others);
  count_samples(nb::cast<Dataset>(self));
  std::vector<Dataset> all = datasets_from(parts);
  all.insert(all.begin(), nb::cast<const Dataset&>(self));
  return with_recipe("transformed", nb::make_tuple(self, "concat", parts), nb::cast(concat(all)));
}

ListOf<nb::str> paths_of(const Dataset& dataset) {
  if (!dataset.impl().samples_are_files()) {
    throw nb::attribute_error("the samples of this dataset are not files of their own; describe(i) says what they are");
  }
  return list_of(dataset.paths(), path_text);
}

ListOf<nb::str> classes_of(const Dataset& dataset) {
  const auto names = dataset.impl().classes();
  if (names.empty()) throw nb::attribute_error("the dataset has no classes; files() with class_folders has");
  return list_of(names, path_text);
}

/// Whether a sample is worth a thread that it is waited for on, as a small one is not.
bool takes_long(const Dataset& dataset, std::int64_t index) {
  const std::int64_t from_start = index < 0 ? index + dataset.size() : index;
  const bool inside = from_start >= 0 && from_start < dataset.size();
  return inside && ReadEffort{.sample_bytes = dataset.impl().read_bytes(from_start)}.takes_long();
}

/// The samples of a slice as one batch, stacked.
Anything batch_of(const Dataset& dataset, nb::handle slice) {
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  count_samples(dataset);
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) < 0) nb::raise_python_error();
  const Py_ssize_t count = PySlice_AdjustIndices(dataset.size(), &start, &stop, step);
  if (count == 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found {}, which has no samples of the {}; a batch has some",
                                                          shown(slice), dataset.size()));
  }
  std::vector<std::int64_t> indices;
  for (Py_ssize_t i = 0; i < count; ++i) indices.push_back(start + i * step);
  return to_python(interruptible(true, [dataset, indices](std::stop_token) {
    const auto samples = static_cast<std::int64_t>(indices.size());
    return DataLoader(subset(dataset, indices), {.batch_size = samples, .num_workers = 0}).next()->value;
  }));
}

/// The samples of some indices as a list, read by one call; Grain asks for them so.
Anything samples_at(const Dataset& dataset, nb::handle indices) {
  std::vector<std::int64_t> chosen = indices_from(indices, "indices");
  if (chosen.empty()) return nb::list();
  return to_python(interruptible(true, [dataset, chosen = std::move(chosen)](std::stop_token) {
    const auto count = static_cast<std::int64_t>(chosen.size());
    return DataLoader(subset(dataset, chosen), {.batch_size = count, .num_workers = 0, .collate = collate::samples()})
        .next()
        ->value;
  }));
}

/// What a function of penstock/_batches/row_arrays.py makes of the dataset: the array whose rows its samples are.
nb::object of_row_array(const char* function, nb::handle dataset) {
  return nb::module_::import_("penstock._batches.row_arrays").attr(function)(dataset);
}

Anything sample_by(const Dataset& dataset, std::int64_t index, bool keeps_order) {
  count_samples(dataset);
  return to_python(interruptible(takes_long(dataset, index), [dataset, index, keeps_order](std::stop_token) {
    return data::read_sample(dataset, index, keeps_order);
  }));
}

Anything sample(const Dataset& dataset, std::int64_t index) { return sample_by(dataset, index, false); }
Anything sample_in_order(const Dataset& dataset, std::int64_t index) { return sample_by(dataset, index, true); }

nb::typed<nb::dict, nb::str, nb::int_> pack_to(const Dataset& dataset, nb::handle folder, nb::handle shard_bytes,
                                               nb::handle format, bool verify, nb::handle progress) {
  PackOptions options;
  options.format = name_from(format);
  const std::int64_t bytes = integer_argument(shard_bytes, "shard_bytes");
  if (bytes < 1) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found shard_bytes={}, expected 1 or more", bytes));
  }
  options.shard_bytes = static_cast<std::uint64_t>(bytes);
  options.verify = verify;
  const std::string path = path_from(folder);
  using Counts = nb::typed<nb::dict, nb::str, nb::int_>;
  return nb::borrow<Counts>(
      with_sample_progress(progress, "packing", folder, [dataset, path, options](const TellSamples& tell) {
        const PackSummary done = interruptible(true, [dataset, path, options, tell](const std::stop_token& stop) {
          PackOptions told = options;
          told.stop = stop;
          told.progress = [&](std::int64_t samples) { tell(samples, dataset.size()); };
          return pack(dataset, path, told);
        });
        nb::dict out;
        out["samples"] = done.samples;
        out["shards"] = done.shards;
        out["bytes"] = done.bytes;
        return nb::object(std::move(out));
      }));
}

/// The array that an argument is. Errors name the argument.
std::optional<Tensor> array_named(nb::handle array, const char* name) {
  try {
    return array_from(array);
  } catch (const Error& error) {
    throw Error(error.code(), core::format("{}: {}", name, error.message()));
  }
}

}  // namespace

std::vector<std::int64_t> indices_from(nb::handle indices, const char* name) {
  if (PyList_Check(indices.ptr()) || PyTuple_Check(indices.ptr())) return integers_argument(indices, name);
  const std::optional<Tensor> array = array_named(indices, name);
  if (array && array->rank() == 1 && array->numel() > 0 && !array->dtype().is_integer()) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("found {} as an array of {}, expected whole numbers", name, array->dtype().name()));
  }
  return integers_argument(indices, name);
}

bool has_dimensions(nb::handle item) {
  if (nb::isinstance<Tensor>(item)) return true;
  const nb::object dims = attribute_or(item, "ndim");
  return !dims.is_none() && PyFloat_Check(item.ptr()) == 0;
}

nb::object kept_list(nb::handle given, bool is_one) {
  return is_one ? nb::borrow(given) : nb::object(nb::list(nb::borrow(given)));
}

std::vector<std::string> paths_from(nb::handle given) {
  if (is_path(given)) return {path_from(given)};
  std::vector<std::string> out;
  for (const nb::handle path : nb::iter(given)) out.push_back(path_from(path));
  return out;
}

bool is_key(nb::handle object) {
  return PyUnicode_Check(object.ptr()) != 0 || (PyIndex_Check(object.ptr()) != 0 && !has_dimensions(object));
}

std::vector<std::string> keys_from(nb::handle keys, bool in_brackets) {
  if (keys.is_none()) return {};
  const auto text_of = [in_brackets](nb::handle key) {
    if (PyUnicode_Check(key.ptr()) != 0 || !is_key(key)) return name_from(key);
    const std::int64_t number = integer_argument(key, "a key");
    return in_brackets ? core::format("[{}]", number) : core::format("{}", number);
  };
  if (is_key(keys)) return {text_of(keys)};
  std::vector<std::string> out;
  for (const nb::handle key : nb::iter(keys)) out.push_back(text_of(key));
  return out;
}

Typed<Dataset> typed(nb::object dataset, nb::handle dtype, nb::handle strict, nb::handle keys) {
  const bool is_strict = flag_argument(strict, "strict");
  if (dtype.is_none() && !is_strict) return dataset;
  if (dtype.is_none()) {
    throw Error(ErrorCode::kInvalidArgument, "found strict=True without a dtype, expected it beside one");
  }
  if (PyUnicode_Check(dtype.ptr()) == 0 || name_from(dtype) != "promote")
    return dataset.attr("_typed")(dtype, is_strict, keys);
  if (is_stream(dataset)) {
    throw Error(ErrorCode::kInvalidArgument,
                "found dtype=\"promote\" for a stream, whose types are not known beforehand; name the type");
  }
  Dataset promoted = interruptible(
      true, [of = nb::cast<Dataset>(dataset)](std::stop_token stop) { return promote(of, {.stop = std::move(stop)}); });
  return with_recipe("typed", nb::make_tuple(dataset, dtype), nb::cast(std::move(promoted)));
}

nb::object with_recipe(const char* maker, const nb::object& arguments, nb::object object) {
  const nb::object function = nb::module_::import_("penstock._objects.pickling").attr(maker);
  nb::setattr(object, kRecipe, nb::make_tuple(function, arguments));
  return object;
}

nb::object made_by(const char* function, const nb::object& arguments, nb::object object) {
  return with_recipe("dataset", nb::make_tuple(function) + arguments, std::move(object));
}

bool is_stream(nb::handle object) {
  return PyType_Check(object.ptr()) == 0 && has_attribute(object, "_native") &&
         nb::isinstance<SampleStream>(nb::object(object.attr("_native")));
}

std::int64_t count_samples(const Dataset& dataset) {
  if (dataset.impl().is_counted()) return dataset.size();
  return interruptible(true, [dataset](std::stop_token) { return dataset.size(); });
}

nb::object counted_dataset(nb::handle object) {
  nb::object held = held_dataset(object);
  count_samples(nb::cast<Dataset>(held));
  return held;
}

bool has_dataset(nb::handle object) {
  return nb::isinstance<Dataset>(object) || (PyType_Check(object.ptr()) == 0 && has_attribute(object, kHeld));
}

nb::object held_dataset(nb::handle object) {
  if (nb::isinstance<Dataset>(object)) return nb::borrow(object);
  if (is_stream(object)) {
    throw Error(
        ErrorCode::kDTypeMismatch,
        "found a stream, which has no length, where a Dataset is needed; a DataLoader and mix() take streams, a stream "
        "has take(), skip() and repeat() itself, and list(stream) gives the samples of one that ends");
  }
  if (has_dataset(object)) {
    nb::object held = object.attr(kHeld)();
    if (nb::isinstance<Dataset>(held)) return held;
  }
  throw Error(ErrorCode::kDTypeMismatch, core::format("found an object of type {}, expected a penstock "
                                                      "Dataset; make one with rows() or files()",
                                                      object_type(object)));
}

void bind_datasets(nb::module_& module) {
  nb::class_<Dataset> of_samples(module, "Dataset", nb::sig("class Dataset(DatasetMethods)"),
                                 nb::is_weak_referenceable(), nb::dynamic_attr(), "Dataset()\n--\n\n");
  of_samples.def("__len__", count_samples)
      .def("__getitem__", sample, nb::arg("index"),
           "Sample `index` alone, read now; negative indices count from the end.")
      .def(
          "__getitem__", [](const Dataset& self, nb::slice samples) { return batch_of(self, samples); },
          nb::arg("samples"),
          "The samples of a slice stacked into one batch, read now; subset() makes a dataset of a part.")
      .def(
          "__getitem__",
          [](nb::handle self, const nb::tuple& key) -> Anything {
            return nb::module_::import_("penstock._batches.row_arrays").attr("part")(self, key);
          },
          nb::arg("key"),
          "A part of the array that rows() took the samples of, by NumPy's rules, read now, as a NumPy array.")
      .def("_getitems", samples_at, nb::arg("indices"))
      .def_prop_ro(
          "shape", [](nb::handle self) -> Typed<Sizes> { return of_row_array("shape", self); },
          "Of the array that rows() took the samples of. AttributeError for other datasets, as for `ndim`, `dtype` and "
          "`chunks`.")
      .def_prop_ro(
          "ndim", [](nb::handle self) { return nb::len(of_row_array("shape", self)); },
          "The number of dimensions of that array.")
      .def_prop_ro(
          "dtype", [](nb::handle self) -> Typed<DType> { return of_row_array("dtype", self); },
          "The type of the elements of that array.")
      .def_prop_ro(
          "chunks", [](nb::handle self) -> Typed<Sizes> { return of_row_array("chunks", self); },
          "The shape of parts that lie together in the file and take about 1 MiB; Dask makes its chunks of them.")
      .def("__dask_tokenize__", [](nb::handle self) { return of_row_array("token", self); })
      .def(
          "_describe",
          [](const Dataset& self, std::int64_t index) {
            count_samples(self);  // which may read, and lets others run meanwhile
            return nb::str(path_text(self.describe(index)));
          },
          nb::arg("index"))
      .def_prop_ro("paths", paths_of,
                   "The file of each sample, in their order: of files(), and of what subset() and concat() make of "
                   "them. AttributeError where samples are not files.")
      .def_prop_ro("_draws", [](const Dataset& self) { return self.impl().is_random(); })
      .def_prop_ro(
          "classes", classes_of,
          "The names of the classes, by number: of files() with class_folders, and of what subset(), map() and "
          "filter() make of it. AttributeError for others.")
      .def("__reduce__",
           [](nb::handle self) {
             return nb::module_::import_("penstock._objects.pickling")
                 .attr("reduced_dataset")(nb::object(self.attr(kRecipe)));
           })
      .def("__copy__", itself<Dataset>)
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return itself<Dataset>(self); }, nb::arg("memo"))
      .def("__repr__", [](const Dataset& d) {
        // Whoever only looks at it does not wait for all shards to be read, and gets no error of theirs.
        if (!d.impl().is_counted()) return std::string("penstock.Dataset(not counted yet; len() counts it)");
        const std::uint64_t samples = static_cast<std::uint64_t>(count_samples(d));
        const std::string remark = d.impl().remark();
        return core::format("penstock.Dataset({}{}{})", core::counted(samples, "sample"), remark.empty() ? "" : "; ",
                            remark);
      });
  of_samples.def("_concat", concat_with);
  bind_transforms(of_samples);
  bind_windows(of_samples);
  module.def("_sample_in_order", sample_in_order, nb::arg("dataset"), nb::arg("index"),
             "Sample `index` alone, whose elements lie in the order in which they are stored.");
  module.def(
      "_typed",
      [](nb::object dataset, nb::handle dtype, nb::handle strict) -> Anything {
        return typed(std::move(dataset), dtype, strict);
      },
      nb::arg("dataset"), nb::arg("dtype").none(), nb::arg("strict") = false);
  module.def(
      "pack",
      [](nb::handle dataset, nb::handle folder, nb::handle shard_bytes, nb::handle format, bool verify,
         nb::handle progress) { return pack_to(dataset_from(dataset), folder, shard_bytes, format, verify, progress); },
      nb::arg("dataset").none(), nb::arg("folder").none(), nb::arg("shard_bytes").none(), nb::arg("format"),
      nb::arg("verify"), nb::arg("progress").none());
  module.def(
      "subset",
      [](nb::handle given, nb::handle indices) -> Typed<Dataset> {
        const nb::object dataset = held_dataset(given);
        const std::vector<std::int64_t> chosen = indices_from(indices, "indices");
        const nb::object kept = nb::cast(Tensor::of(std::span<const std::int64_t>(chosen)));
        return made_by("subset", nb::make_tuple(dataset, kept), nb::cast(subset(dataset_from(dataset), chosen)));
      },
      nb::arg("dataset").none(), nb::arg("indices").none());
}

}  // namespace penstock::python
