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
#include "arrays/torch_memory.h"
#include "bindings.h"
#include "call/arguments.h"
#include "call/progress.h"
#include "content/archive.h"
#include "content/functions.h"
#include "content/py_source.h"
#include "content/value.h"
#include "core/counted.h"
#include "core/format.h"
#include "data/batch/batch_maker.h"
#include "data/dataset/rows.h"
#include "data/dataset_impl.h"
#include "dataset/handles.h"
#include "dataset/transforms.h"
#include "dataset/windows.h"
#include "file/raw.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/collate.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/ops.h"
#include "penstock/pack.h"
#include "penstock/promote.h"
#include "penstock/sample_stream.h"

namespace penstock::python {
namespace {

/// Under which name a dataset or collation keeps what it is unpickled by.
constexpr const char* kRecipe = "_recipe";

std::vector<std::string> strings_from(nb::handle items) {
  std::vector<std::string> out;
  for (const nb::handle item : nb::iter(items)) {
    if (PyUnicode_Check(item.ptr()) == 0) {
      throw Error(ErrorCode::kDTypeMismatch,
                  core::format("found an object of type {} at position {} of a list of strings", object_type(item),
                               out.size()));
    }
    out.push_back(name_from(item));
    yield_at(out.size());
  }
  return out;
}

Typed<Dataset> made(const char* function, const nb::object& arguments, Dataset dataset) {
  return made_by(function, arguments, nb::cast(std::move(dataset)));
}

/// Samples are the items: strings, numbers, nested lists of numbers, or arrays of one shape.
Dataset rows_of_list(nb::handle items) {
  if (nb::len(items) > 0 && PyUnicode_Check(nb::object(items[0]).ptr()) != 0) return strings(strings_from(items));
  std::vector<Tensor> tensors;
  for (const nb::handle item : nb::iter(items)) {
    const std::optional<Tensor> tensor = has_dimensions(item) ? array_from(item) : std::nullopt;
    if (!tensor) return rows(tensor_from(items, nb::none()));
    tensors.push_back(*tensor);
    yield_at(tensors.size());
  }
  if (tensors.empty()) throw Error(ErrorCode::kInvalidArgument, "found an empty list, expected one sample or more");
  return rows(stack(tensors));
}

/// True, False or None: not said.
std::optional<bool> choice_from(nb::handle choice) {
  if (choice.is_none()) return std::nullopt;
  if (!PyBool_Check(choice.ptr())) throw nb::type_error("mmap is True, False or None");
  return choice.is(Py_True);
}

/// All of a sequence that reads its items when they are asked for, such as a column of a Hugging Face dataset, as a
/// list or an array; nothing for what is no sequence.
nb::object whole_of(nb::handle source) {
  const nb::object sequence = nb::module_::import_("collections.abc").attr("Sequence");
  if (PyObject_IsInstance(source.ptr(), sequence.ptr()) != 1 || PyBytes_Check(source.ptr()) != 0) return {};
  const nb::object whole = source[nb::slice(nb::none(), nb::none(), nb::none())];
  const bool is_plain = PyList_Check(whole.ptr()) != 0 || PyTuple_Check(whole.ptr()) != 0 || has_dimensions(whole);
  return is_plain ? whole : nb::object(nb::list(whole));
}

Dataset rows_of(nb::handle source, nb::handle key, std::optional<bool> mmap) {
  const std::string name = key.is_none() ? "" : name_from(key);
  if (is_path(source)) {
    return interruptible(true,
                         [path = path_from(source), name, mmap](std::stop_token) { return rows(path, name, mmap); });
  }
  if (nb::isinstance<PySource>(source)) {
    return interruptible(true, [of = nb::cast<PySource>(source).source, name, mmap](std::stop_token) {
      return data::rows_in(open(of), name, mmap);
    });
  }
  if (!name.empty()) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found key={} beside an array, expected it beside "
                                                          "a path; leave it out",
                                                          shown(key)));
  }
  if (nb::isinstance<PyLazyTensor>(source)) {
    return interruptible(
        true, [entry = nb::cast<PyLazyTensor>(source).tensor, mmap](std::stop_token) { return rows(entry, mmap); });
  }
  if (const std::optional<Tensor> tensor = array_from(source)) {
    forbid_resizing(source);
    return rows(*tensor);
  }
  if (PyList_Check(source.ptr()) || PyTuple_Check(source.ptr())) return rows_of_list(source);
  if (const nb::object whole = whole_of(source); whole.is_valid()) return rows_of(whole, key, mmap);
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("rows() takes a path, a Source, a Tensor, a LazyTensor, an array of any "
                           "library, or a list of numbers, of strings or of arrays; found "
                           "an object of type {}",
                           object_type(source)));
}

/// The samples of a file without a header, whose array the arguments say.
Typed<Dataset> headerless_rows(nb::handle source, nb::handle key, nb::handle mmap, const RawArguments& layout,
                               nb::handle strict) {
  if (!key.is_none() || flag_argument(strict, "strict")) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found {} beside shape=, offset= or order=: a file without a header has one array, and "
                             "dtype= is what its elements are; cast() changes their type",
                             key.is_none() ? "strict=True" : "key="));
  }
  if (!is_path(source) && !nb::isinstance<PySource>(source)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found shape=, offset= or order= beside an object of type {}, expected them beside a path",
                             object_type(source)));
  }
  const nb::object array = nb::cast(open_raw(source, layout, false));
  return made("rows", nb::make_tuple(array, nb::none(), mmap), rows_of(array, nb::none(), choice_from(mmap)));
}

/// In place of a numpy.memmap the array in its file, where it is nothing else; all others as they are.
nb::object without_memmap(nb::handle source) {
  if (!comes_from(source, "numpy") || PyType_Check(source.ptr()) != 0) return nb::borrow(source);
  if (!nb::str(nb::object(source.type().attr("__name__"))).equal(nb::str("memmap"))) return nb::borrow(source);
  nb::object entry = nb::module_::import_("penstock._files.memmap").attr("entry_of")(source);
  return entry.is_none() ? nb::borrow(source) : entry;
}

/// Names, or one.
std::vector<std::string> excluded_from(nb::handle exclude) {
  if (exclude.is_none()) return {};
  if (is_path(exclude)) return {path_from(exclude)};
  std::vector<std::string> out;
  for (const nb::handle one : nb::iter(exclude)) out.push_back(path_from(one));
  return out;
}

FilesOptions files_options(nb::handle keys, nb::handle index, nb::handle exclude, nb::handle raw,
                           nb::handle class_folders) {
  FilesOptions out;
  out.keys = keys_from(keys, true);
  out.exclude = excluded_from(exclude);
  out.raw = flag_argument(raw, "raw");
  out.class_folders = flag_argument(class_folders, "class_folders");
  out.index = PyBool_Check(index.ptr()) ? nb::cast<bool>(index) : true;
  if (!PyBool_Check(index.ptr())) out.index_path = path_from(index);
  return out;
}

Dataset files_of(nb::handle pattern, const FilesOptions& options) {
  if (is_path(pattern)) {
    return interruptible(true, [text = path_from(pattern), options](std::stop_token) { return files(text, options); });
  }
  std::vector<std::string> paths;
  for (const nb::handle path : nb::iter(pattern)) paths.push_back(path_from(path));
  return interruptible(true, [paths, options](std::stop_token) { return files(paths, options); });
}

Typed<Dataset> files_opened_by(nb::handle source, const nb::tuple& arguments, FilesOptions options) {
  const HeldFunction function(source, "source=");
  options.source = [f = function.lent()](const std::string& path) { return f.opened(path); };
  nb::object out =
      with_recipe("sourced_files", nb::make_tuple(arguments, source), nb::cast(files_of(arguments[0], options)));
  nb::setattr(out, "_function", function.keeper());
  return out;
}

/// What datasets of other classes have that hold one of ours: it gives that, or says why it cannot.
constexpr const char* kHeld = "__penstock_dataset__";

Dataset dataset_from(nb::handle object) { return nb::cast<Dataset>(counted_dataset(object)); }

nb::tuple held_datasets(const nb::args& objects) {
  nb::list out;
  for (const nb::handle object : objects) out.append(counted_dataset(object));
  return nb::tuple(out);
}

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

nb::list paths_of(const Dataset& dataset) {
  if (!dataset.impl().samples_are_files()) {
    throw nb::attribute_error("the samples of this dataset are not files of their own; describe(i) says what they are");
  }
  nb::list out;
  for (const std::string& path : dataset.paths()) out.append(path_text(path));
  return out;
}

nb::list classes_of(const Dataset& dataset) {
  const auto names = dataset.impl().classes();
  if (names.empty()) throw nb::attribute_error("the dataset has no classes; files() with class_folders has");
  nb::list out;
  for (const std::string& name : names) out.append(path_text(name));
  return out;
}

/// Whether a sample is worth a thread that it is waited for on, as a small one is not.
bool takes_long(const Dataset& dataset, std::int64_t index) {
  const std::int64_t from_start = index < 0 ? index + dataset.size() : index;
  const bool inside = from_start >= 0 && from_start < dataset.size();
  return inside && ReadEffort{.sample_bytes = dataset.impl().read_bytes(from_start)}.takes_long();
}

/// The samples of a slice as one batch, stacked.
nb::object batch_of(const Dataset& dataset, nb::handle slice) {
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
nb::object samples_at(const Dataset& dataset, nb::handle indices) {
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

nb::object sample_by(const Dataset& dataset, std::int64_t index, bool keeps_order) {
  count_samples(dataset);
  return to_python(interruptible(takes_long(dataset, index), [dataset, index, keeps_order](std::stop_token) {
    return data::read_sample(dataset, index, keeps_order);
  }));
}

nb::object sample(const Dataset& dataset, std::int64_t index) { return sample_by(dataset, index, false); }
nb::object sample_in_order(const Dataset& dataset, std::int64_t index) { return sample_by(dataset, index, true); }

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

nb::object held_dataset(nb::handle object) {
  if (nb::isinstance<Dataset>(object)) return nb::borrow(object);
  if (is_stream(object)) {
    throw Error(
        ErrorCode::kDTypeMismatch,
        "found a stream, which has no length, where a Dataset is needed; a DataLoader and mix() take streams, a stream "
        "has take(), skip() and repeat() itself, and list(stream) gives the samples of one that ends");
  }
  if (PyType_Check(object.ptr()) == 0 && has_attribute(object, kHeld)) {
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
      .def("__getitem__", sample, nb::arg("index"), nb::sig("def __getitem__(self, index: int, /) -> typing.Any"),
           "Sample `index` alone, read now; negative indices count from the end.")
      .def(
          "__getitem__", [](const Dataset& self, nb::slice samples) { return batch_of(self, samples); },
          nb::arg("samples"), nb::sig("def __getitem__(self, samples: slice, /) -> typing.Any"),
          "The samples of a slice stacked into one batch, read now; subset() makes a dataset of a part.")
      .def(
          "__getitem__",
          [](nb::handle self, const nb::tuple& key) {
            return nb::module_::import_("penstock._batches.row_arrays").attr("part")(self, key);
          },
          nb::arg("key"), nb::sig("def __getitem__(self, key: tuple[typing.Any, ...], /) -> typing.Any"),
          "A part of the array that rows() took the samples of, by NumPy's rules, read now, as a NumPy array.")
      .def("_getitems", samples_at, nb::arg("indices"),
           nb::sig("def _getitems(self, indices: collections.abc.Iterable[int]) -> list[typing.Any]"))
      .def_prop_ro(
          "shape", [](nb::handle self) { return of_row_array("shape", self); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "Of the array that rows() took the samples of. AttributeError for other datasets, as for `ndim`, `dtype` and "
          "`chunks`.")
      .def_prop_ro(
          "ndim", [](nb::handle self) { return nb::len(of_row_array("shape", self)); },
          nb::sig("def ndim(self) -> int"), "The number of dimensions of that array.")
      .def_prop_ro(
          "dtype", [](nb::handle self) { return of_row_array("dtype", self); }, nb::sig("def dtype(self) -> DType"),
          "The type of the elements of that array.")
      .def_prop_ro(
          "chunks", [](nb::handle self) { return of_row_array("chunks", self); },
          nb::sig("def chunks(self) -> tuple[int, ...]"),
          "The shape of parts that lie together in the file and take about 1 MiB; Dask makes its chunks of them.")
      .def(
          "__dask_tokenize__", [](nb::handle self) { return of_row_array("token", self); },
          nb::sig("def __dask_tokenize__(self) -> tuple[typing.Any, ...]"))
      .def(
          "_describe",
          [](const Dataset& self, std::int64_t index) {
            count_samples(self);  // which may read, and lets others run meanwhile
            return nb::str(path_text(self.describe(index)));
          },
          nb::arg("index"))
      .def_prop_ro("paths", paths_of, nb::sig("def paths(self) -> list[str]"),
                   "The file of each sample, in their order: of files(), and of what subset() and concat() make of "
                   "them. AttributeError where samples are not files.")
      .def_prop_ro(
          "_draws", [](const Dataset& self) { return self.impl().is_random(); }, nb::sig("def _draws(self) -> bool"))
      .def_prop_ro(
          "classes", classes_of, nb::sig("def classes(self) -> list[str]"),
          "The names of the classes, by number: of files() with class_folders, and of what subset(), map() and "
          "filter() make of it. AttributeError for others.")
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::module_::import_("penstock._objects.pickling")
                .attr("reduced_dataset")(nb::object(self.attr(kRecipe)));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def(
          "__copy__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __copy__(self) -> Dataset"))
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, nb::arg("memo"),
          nb::sig("def __deepcopy__(self, memo: object) -> Dataset"))
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
             nb::sig("def _sample_in_order(dataset: Dataset, index: int) -> typing.Any"),
             "Sample `index` alone, whose elements lie in the order in which they are stored.");
  module.def(
      "_typed",
      [](nb::object dataset, nb::handle dtype, nb::handle strict) { return typed(std::move(dataset), dtype, strict); },
      nb::arg("dataset"), nb::arg("dtype").none(), nb::arg("strict") = false,
      nb::sig("def _typed(dataset: typing.Any, dtype: object | None, strict: bool = False) -> typing.Any"));
  module.def(
      "rows",
      [](nb::handle given, nb::handle key, nb::handle mmap, nb::handle dtype, nb::handle strict, nb::handle shape,
         nb::handle offset, nb::handle order) {
        const RawArguments layout = {dtype, shape, offset, order};
        if (layout.say_headerless()) return headerless_rows(given, key, mmap, layout, strict);
        const nb::object source = without_memmap(given);
        return typed(made("rows", nb::make_tuple(source, key, mmap), rows_of(source, key, choice_from(mmap))), dtype,
                     strict);
      },
      nb::arg("source").none(), nb::arg("key").none(), nb::arg("mmap").none(), nb::arg("dtype").none(),
      nb::arg("strict"), nb::arg("shape").none(), nb::arg("offset").none(), nb::arg("order").none());
  module.def(
      "files",
      [](nb::handle pattern, nb::handle keys, nb::handle index, nb::handle exclude, nb::handle raw,
         nb::handle class_folders, nb::handle dtype, nb::handle strict, nb::handle source) {
        const nb::object paths = is_path(pattern) ? nb::borrow(pattern) : nb::object(nb::list(nb::borrow(pattern)));
        const nb::object names =
            keys.is_none() || is_key(keys) ? nb::borrow(keys) : nb::object(nb::list(nb::borrow(keys)));
        const nb::object left_out =
            exclude.is_none() || is_path(exclude) ? nb::borrow(exclude) : nb::object(nb::list(nb::borrow(exclude)));
        const nb::tuple arguments = nb::make_tuple(paths, names, index, left_out, raw, class_folders);
        FilesOptions options = files_options(names, index, left_out, raw, class_folders);
        if (!source.is_none()) {
          return typed(files_opened_by(source, arguments, std::move(options)), dtype, strict, names);
        }
        return typed(made("files", arguments, files_of(paths, options)), dtype, strict, names);
      },
      nb::arg("pattern").none(), nb::arg("keys").none(), nb::arg("index"), nb::arg("exclude").none(), nb::arg("raw"),
      nb::arg("class_folders"), nb::arg("dtype").none(), nb::arg("strict"), nb::arg("source").none());
  module.def(
      "packed",
      [](nb::handle pattern, nb::handle mmap) {
        const std::string text = path_from(pattern);
        return made(
            "packed", nb::make_tuple(pattern, mmap),
            interruptible(true, [text, mmap = choice_from(mmap)](std::stop_token) { return packed(text, mmap); }));
      },
      nb::arg("pattern").none(), nb::arg("mmap").none());
  module.def(
      "pack",
      [](nb::handle dataset, nb::handle folder, nb::handle shard_bytes, nb::handle format, bool verify,
         nb::handle progress) { return pack_to(dataset_from(dataset), folder, shard_bytes, format, verify, progress); },
      nb::arg("dataset").none(), nb::arg("folder").none(), nb::arg("shard_bytes").none(), nb::arg("format"),
      nb::arg("verify"), nb::arg("progress").none());
  module.def(
      "subset",
      [](nb::handle given, nb::handle indices) {
        const nb::object dataset = held_dataset(given);
        const std::vector<std::int64_t> chosen = indices_from(indices, "indices");
        const nb::object kept = nb::cast(Tensor::of(std::span<const std::int64_t>(chosen)));
        return made("subset", nb::make_tuple(dataset, kept), subset(dataset_from(dataset), chosen));
      },
      nb::arg("dataset").none(), nb::arg("indices").none());
}

}  // namespace penstock::python
