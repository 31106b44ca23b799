// penstock.open, Archive and LazyTensor for Python. A call that may take long (ReadEffort) works on a thread of its
// own, so that Ctrl-C is answered; its report becomes the caller's only when the work has ended.

#include "content/archive.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>

#include "archive/opening.h"
#include "arrays/elements.h"
#include "arrays/foreign.h"
#include "bindings.h"
#include "call/arguments.h"
#include "call/progress.h"
#include "call/traffic.h"
#include "content/contents.h"
#include "content/value.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/locations.h"
#include "io/read/reader.h"
#include "io/remote/remote.h"
#include "io/source/composed_source.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "tensor/indexing.h"

namespace penstock::python {
namespace {

PyLazyTensor entry_named(const PyArchive& archive, nb::handle name) {
  return {archive.get()[name_from(name)], archive.verify(), nb::tuple()};
}

bool has(const PyArchive& archive, nb::handle name) {
  return PyUnicode_Check(name.ptr()) && archive.get().contains(name_from(name));
}

nb::object entry_at(const Archive& archive, bool verify, std::size_t index) {
  return nb::cast(PyLazyTensor{archive.entry(index), verify, nb::tuple()});
}

ListOf<nb::str> names(const PyArchive& self) {
  const Archive archive = self.get();
  return list_of(archive.entries(), [](const TensorEntry& entry) { return text_from(entry.name); });
}

nb::list values(const PyArchive& self) {
  const Archive archive = self.get();
  nb::list out;
  for (std::size_t i = 0; i < archive.size(); ++i) out.append(entry_at(archive, self.verify(), i));
  return out;
}

nb::list items(const PyArchive& self) {
  const Archive archive = self.get();
  nb::list out;
  for (std::size_t i = 0; i < archive.size(); ++i) {
    out.append(nb::make_tuple(text_from(archive.entries()[i].name), entry_at(archive, self.verify(), i)));
  }
  return out;
}

Anything structure(const PyArchive& self) {
  const Archive archive = self.get();
  const EntryLeaf entry = [&](std::size_t index) { return entry_at(archive, self.verify(), index); };
  return in_file(archive.path(), [&] { return to_python(archive.structure(), entry); });
}

nb::object get(const PyArchive& archive, nb::handle name, nb::handle otherwise) {
  return has(archive, name) ? nb::cast(entry_named(archive, name)) : nb::borrow(otherwise);
}

Typed<nb::str> path_of(const PyArchive& self) {
  const Archive archive = self.get();
  return path_text(archive.path());
}

nb::typed<nb::dict, nb::str, nb::str> metadata(const PyArchive& self) {
  const Archive archive = self.get();
  nb::dict out;
  for (const auto& [key, value] : archive.metadata()) out[text_from(key)] = text_from(value);
  return out;
}

ListOf<nb::str> unknown_globals(const PyArchive& self) {
  const Archive archive = self.get();
  return list_of(archive.unknown_globals(), text_from);
}

std::string describe(const Archive& archive) {
  return core::format("penstock.Archive({}, format='{}', {} tensor{})", nb::repr(path_text(archive.path())).c_str(),
                      archive.format(), archive.entries().size(), archive.entries().size() == 1 ? "" : "s");
}

void fill(nb::dict dict, const Report& report) {
  dict.clear();
  dict["route"] = text_from(report.route);
  dict["why"] = text_from(report.why);
  dict["payload_bytes"] = report.payload_bytes;
  dict["read_bytes"] = report.read_bytes;
  dict["depth"] = report.depth;
  dict["depth_limit"] = text_from(report.depth_limit);
  dict["open_seconds"] = report.open_seconds;
  dict["read_seconds"] = report.read_seconds;
  dict["decode_seconds"] = report.decode_seconds;
  dict["total_seconds"] = report.total_seconds;
  if (report.remote.requests > 0 || report.remote.cached_bytes > 0) add_traffic(dict, report.remote);
}

/// load(options), answering signals if it takes long. The report is the work's own until that has ended: an interrupted
/// load goes on for a while.
template <class Load>
auto reporting(bool takes_long, const LoadOptions& options, const ReportDict& report, Load load) {
  auto work = [load = std::move(load), options = LoadOptions(options),
               is_wanted = report.has_value()](std::stop_token stop) mutable {
    Report own;
    options.stop = std::move(stop);
    options.report = is_wanted ? &own : nullptr;
    auto loaded = load(options);
    return std::pair(std::move(loaded), std::move(own));
  };
  auto [result, told] = interruptible(takes_long, std::move(work));
  if (report) fill(*report, told);
  return std::move(result);
}

/// How an entry is found again where it is unpickled.
PyLazyTensor restore_entry(nb::handle path, nb::handle entry_name, const nb::tuple& keys, bool verify) {
  const PyArchive archive = open_archive(path_from(path), {.verify = verify});
  const std::string name = name_from(entry_name);
  PyLazyTensor entry{archive.get()[name], verify, keys};
  for (const nb::handle key : keys) entry.tensor = index(entry.tensor, key);
  return entry;
}

bool waits_for_server(const Source& source) { return io::costs_of(*source).waits(); }

/// A path that another process can open too. Of bytes in memory, and of others' file systems, the name is only a name:
/// it would lead to another file, which who gave the bytes has chosen.
nb::object reducible_path(const Source& source) {
  const std::string& path = source.name();
  const bool is_opened = io::as_composed(source) != nullptr || io::opened_by_name(*source);
  if (io::remote::has_own_options(io::beneath(*source))) {
    throw Error(ErrorCode::kUnsupported,
                "it was opened with options of its own, which its URL does not tell; pickle what penstock.remote.open "
                "gave, and open that again",
                {path});
  }
  if (is_opened && io::waits_for_server(path)) {
    if (!path.ends_with("?...")) return path_text(path);
    throw Error(ErrorCode::kUnsupported, "a URL with a signature or token in its query cannot be pickled", {path});
  }
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (is_opened && !error && std::filesystem::exists(whole, error)) return path_text(whole.string());
  throw Error(ErrorCode::kUnsupported, "what lies in memory alone cannot be pickled; pickle its bytes instead", {path});
}

nb::object pickling(const char* function) { return nb::module_::import_("penstock._objects.pickling").attr(function); }

nb::tuple reduce(const Archive& archive, bool verify) {
  return nb::make_tuple(pickling("archive"), nb::make_tuple(reducible_path(archive.sources().front()), verify));
}

nb::tuple reduce(const PyLazyTensor& entry) {
  const nb::object path = reducible_path(entry.tensor.source());
  if (entry.raw.is_valid()) return nb::make_tuple(pickling("raw"), nb::make_tuple(path, entry.raw, entry.keys));
  return nb::make_tuple(pickling("entry"),
                        nb::make_tuple(path, text_from(entry.tensor.name()), entry.keys, entry.verify));
}

void bind_archive_class(nb::module_& module) {
  nb::class_<PyArchive>(module, "Archive", nb::sig("class Archive(ArchiveMethods)"), nb::is_weak_referenceable(),
                        "Archive()\n--\n\n")
      .def_prop_ro(
          "format", [](const PyArchive& a) { return std::string(a.get().format()); },
          "\"npy\", \"npz\", \"pt\", \"safetensors\", ...")
      .def_prop_ro("path", path_of)
      .def_prop_ro("metadata", metadata, "What the file says about itself, as text.")
      .def_prop_ro(
          "has_metadata", [](const PyArchive& a) { return a.get().has_metadata(); },
          "Whether the file says anything about itself: an empty `__metadata__` of safetensors counts.")
      .def_prop_ro("unknown_globals", unknown_globals,
                   "Names in the file that Penstock does not know and keeps as inert penstock.Opaque objects.")
      .def_prop_ro("structure", structure, "The nested content, with a LazyTensor for each tensor.")
      .def("_keys", names)
      .def("__len__", [](const PyArchive& a) { return a.get().size(); })
      .def("_values", values)
      .def("_items", items)
      .def("_get", get, nb::arg("name").none(), nb::arg("default").none())
      .def("__contains__", has, nb::arg("name").none())
      .def("__iter__", [](const PyArchive& a) -> IteratorOf<nb::str> { return nb::iter(names(a)); })
      .def("__getitem__", entry_named, nb::arg("name").none(),
           nb::sig("def __getitem__(self, name: str, /) -> LazyTensor"),
           "The entry of that name; KeyError names similar ones.")
      .def(
          "_load",
          [](const PyArchive& a, nb::handle device, std::optional<bool> mmap, std::optional<bool> direct,
             std::optional<bool> gds, std::optional<std::int64_t> threads, const ReportDict& report,
             nb::handle progress, nb::handle dtype, nb::handle strict, nb::handle shared, nb::handle pinned) {
            const bool is_shared = flag_argument(shared, "shared");
            const bool is_pinned = flag_argument(pinned, "pinned");
            const LoadArguments arguments = {device, mmap, direct, gds, threads, dtype, strict, is_shared, is_pinned};
            const LoadOptions options = arguments.options(a.verify());
            return with_progress(progress, "loading", path_of(a),
                                 [archive = a.get(), options, report] { return load_value(archive, options, report); });
          },
          nb::arg("device"), nb::arg("mmap").none(), nb::arg("direct").none(), nb::arg("gds").none(),
          nb::arg("threads").none(), nb::arg("report").none(), nb::arg("progress").none(), nb::arg("dtype").none(),
          nb::arg("strict"), nb::arg("shared").none(), nb::arg("pinned").none())
      .def("_close", &PyArchive::close)
      .def("__enter__", itself<PyArchive>)
      .def("__exit__", [](PyArchive& a, const nb::args&) { a.close(); })
      .def("__reduce__", [](const PyArchive& archive) { return reduce(archive.get(), archive.verify()); })
      .def_static("_restore",
                  [](nb::handle path, bool verify) { return open_archive(path_from(path), {.verify = verify}); })
      .def("__repr__", [](const PyArchive& a) {
        const std::optional<Archive> open = a.if_open();
        return open ? describe(*open) : std::string("penstock.Archive(closed)");
      });
}

/// Where the bytes lie in the file, or None when they are compressed.
Typed<std::optional<std::int64_t>> offset_of(const PyLazyTensor& entry) {
  const StorageEntry& storage = entry.tensor.storage();
  if (storage.is_deflated()) return nb::none();
  return nb::int_(storage.offset + entry.tensor.entry().byte_offset);
}

std::string describe(const PyLazyTensor& entry) {
  return core::format("penstock.LazyTensor({}, shape={}, dtype={})", nb::repr(text_from(entry.tensor.name())).c_str(),
                      entry.tensor.shape().to_string(), entry.tensor.dtype().name());
}

void bind_entry_class(nb::module_& module) {
  nb::class_<PyLazyTensor>(module, "LazyTensor", nb::sig("class LazyTensor(LazyTensorMethods)"),
                           nb::is_weak_referenceable(), "LazyTensor()\n--\n\n")
      .def_prop_ro("name", [](const PyLazyTensor& e) { return text_from(e.tensor.name()); })
      .def_prop_ro("dtype", [](const PyLazyTensor& e) { return e.tensor.dtype(); })
      .def_prop_ro("shape", [](const PyLazyTensor& e) { return tuple_of(e.tensor.shape()); })
      .def_prop_ro(
          "strides", [](const PyLazyTensor& e) { return tuple_of(e.tensor.strides()); },
          "In elements, as the file holds them.")
      .def_prop_ro("ndim", [](const PyLazyTensor& e) { return e.tensor.shape().rank(); })
      .def_prop_ro(
          "nbytes", [](const PyLazyTensor& e) { return e.tensor.nbytes(); }, "Bytes that `load` delivers.")
      .def_prop_ro("offset", offset_of, "Byte offset of the first element in the file; None when it is compressed.")
      .def_prop_ro(
          "byte_swapped", [](const PyLazyTensor& e) { return e.tensor.entry().encoding.swapped; },
          "Whether the file holds it in the other byte order than this machine's; `load` gives native order.")
      .def_prop_ro(
          "chunks",
          [](nb::handle self) -> Typed<Sizes> {
            return nb::module_::import_("penstock._batches.row_arrays").attr("chunks_of")(self);
          },
          "The shape of parts that lie together in the file and take about 1 MiB; Dask makes its chunks of them.")
      .def("__dask_tokenize__",
           [](nb::handle self) { return nb::module_::import_("penstock._batches.row_arrays").attr("token_of")(self); })
      .def_prop_ro("requires_grad", [](const PyLazyTensor& e) { return e.tensor.entry().requires_grad; })
      .def("__len__",
           [](const PyLazyTensor& e) {
             if (e.tensor.shape().rank() == 0) throw nb::type_error("len() of a 0-d tensor");
             return e.tensor.shape()[0];
           })
      .def(
          "__getitem__",
          [](const PyLazyTensor& e, nb::handle key) {
            return PyLazyTensor{index(e.tensor, key), e.verify, nb::tuple(e.keys + nb::make_tuple(key)), e.raw};
          },
          nb::arg("key").none(), "A slice: integers, slices with positive steps and Ellipsis. Reads nothing.")
      .def(
          "_load",
          [](const PyLazyTensor& e, nb::handle device, std::optional<bool> mmap, std::optional<bool> direct,
             std::optional<bool> gds, std::optional<std::int64_t> threads, const ReportDict& report, nb::handle dtype,
             nb::handle strict) {
            const LoadArguments arguments = {device, mmap, direct, gds, threads, dtype, strict};
            return load_entry(e, arguments.options(e.verify), report);
          },
          nb::arg("device"), nb::arg("mmap").none(), nb::arg("direct").none(), nb::arg("gds").none(),
          nb::arg("threads").none(), nb::arg("report").none(), nb::arg("dtype").none(), nb::arg("strict"))
      .def("__iter__",
           [](nb::handle self) -> Typed<IteratorOf<PyLazyTensor>> {
             // By __getitem__ alone, what has no dimensions would be an empty sequence.
             if (nb::cast<const PyLazyTensor&>(self).tensor.shape().rank() == 0) {
               throw nb::type_error("iteration over a 0-d tensor");
             }
             return checked(PySeqIter_New(self.ptr()));
           })
      .def(
          "__contains__",
          [](const PyLazyTensor&, nb::handle) -> bool {
            throw nb::type_error("the tensor is not loaded, so nobody knows what is in it; load it");
          },
          nb::arg("value").none())
      .def(
          "__array__",
          [](const PyLazyTensor& e, nb::handle dtype, nb::handle copy) -> Anything {
            if (copy.is(Py_False)) {
              throw nb::value_error("a tensor that is not loaded has no memory to share; leave copy=False out");
            }
            return nb::cast(load_entry(e, {.verify = e.verify}, {})).attr("__array__")(dtype);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__reduce__", [](const PyLazyTensor& entry) { return reduce(entry); })
      .def("_as_stored",
           [](const PyLazyTensor& e) {
             return PyLazyTensor{e.tensor.as_stored(), e.verify, e.keys, e.raw};
           })
      .def_static("_restore", restore_entry)
      .def("__repr__", [](const PyLazyTensor& e) { return describe(e); });
}

}  // namespace

std::optional<Archive> PyArchive::if_open() const {
  const nb::ft_lock_guard lock(mutex_);
  return archive_;
}

Archive PyArchive::get() const {
  if (std::optional<Archive> open = if_open()) return *std::move(open);
  throw Error(ErrorCode::kInvalidArgument, "the archive is closed; open the file again");
}

void PyArchive::close() noexcept {
  std::optional<Archive> closed;  // the last handle takes its time
  const nb::ft_lock_guard lock(mutex_);
  std::swap(closed, archive_);
}

LoadOptions LoadArguments::options(bool verify) const {
  const bool is_strict = flag_argument(strict, "strict");
  if (is_strict && dtype.is_none()) {
    throw Error(ErrorCode::kInvalidArgument, "found strict=True without a dtype, expected it beside one");
  }
  return {.device = device_from(device),
          .mmap = mmap,
          .verify = verify,
          .direct = direct,
          .gds = gds,
          .threads = threads ? not_negative(*threads, "threads") : 0,
          .dtype = dtype.is_none() ? std::nullopt : std::optional(dtype_from(dtype)),
          .strict = is_strict,
          .shared = shared,
          .pinned = pinned};
}

Archive part_of(Archive archive, nb::handle key, nb::handle prefix) {
  const auto step_to = [](nb::handle step) {
    if (PyUnicode_Check(step.ptr())) return Value::string(name_from(step));
    if (PyLong_Check(step.ptr()) && !PyBool_Check(step.ptr())) return Value::integer(integer_from(step));
    throw Error(
        ErrorCode::kDTypeMismatch,
        core::format("found a key of type {}, expected a string, an integer or a list of these", object_type(step)));
  };
  if (PyList_Check(key.ptr()) || PyTuple_Check(key.ptr())) {
    for (const nb::handle step : nb::iter(key)) archive = archive.part(step_to(step));
  } else if (PyUnicode_Check(key.ptr())) {
    archive = archive.part(std::string_view(name_from(key)));
  } else if (!key.is_none()) {
    archive = archive.part(step_to(key));
  }
  if (prefix.is_none()) return archive;
  const std::string begin = name_from(prefix);
  return begin.empty() ? archive : archive.with_prefix(begin);
}

PyArchive open_archive(const std::string& path, const OpenOptions& options) {
  // A server may not answer.
  Source source =
      interruptible(io::waits_for_server(path), [path](std::stop_token) { return archive::source_at(path); });
  return open_archive(std::move(source), options);
}

PyArchive open_archive(Source source, const OpenOptions& options) {
  const bool waits = waits_for_server(source);
  auto opening = interruptible(waits, [source = std::move(source)](std::stop_token) mutable {
    return std::make_shared<archive::Opening>(std::move(source));
  });
  // What decodes text is Python's: a thread that is not would make a state of the interpreter for every string, and
  // this one answers signals there.
  const bool is_long = waits || (!options.decode && ReadEffort{.index_bytes = opening->index_bytes()}.takes_long());
  auto finish = [opening = std::move(opening), options](std::stop_token) { return opening->finish(options); };
  return {interruptible(is_long, std::move(finish)), options.verify};
}

PyArchive open_memory(nb::handle data, const std::string& name, const OpenOptions& options) {
  return open_archive(memory_source(memory_of(data), name), options);
}

PyArchive open_given(nb::handle given, const OpenOptions& options) {
  if (is_path_not_content(given)) return open_archive(path_from(given), options);
  if (nb::isinstance<PySource>(given)) return open_archive(nb::cast<PySource>(given).source, options);
  const nb::object content = nb::module_::import_("penstock._files.contents").attr("content")(given);
  const nb::object bytes = content[0];
  const nb::object name = content[1];
  if (bytes.is_none()) return open_archive(path_from(name), options);
  return open_memory(bytes, name_from(name), options);
}

bool ReadEffort::takes_long() const noexcept {
  // Somebody may want to stop what reads more than this; below it the thread would take a noticeable part of the time.
  // A byte of index takes as long as sixteen of payload; a byte of a deflated sample may stand for many.
  constexpr std::uint64_t kLong = std::uint64_t{16} << 20;
  constexpr std::uint64_t kIndexCost = 16;
  constexpr std::uint64_t kSampleCost = 64;
  return asks_server || payload_bytes >= kLong || index_bytes >= kLong / kIndexCost ||
         sample_bytes >= kLong / kSampleCost;
}

ReadEffort ReadEffort::of(const Archive& archive) noexcept {
  ReadEffort out{.asks_server = std::ranges::any_of(archive.sources(), waits_for_server)};
  // Where the sum wraps, a storage alone is large enough.
  for (const StorageEntry& storage : archive.storages()) {
    out.payload_bytes = std::max(out.payload_bytes + storage.nbytes, storage.nbytes);
  }
  return out;
}

ReadEffort ReadEffort::of(const LazyTensor& tensor) {
  // A slice of compressed bytes takes as long as all of them.
  constexpr std::uint64_t kSliceShare = 16;
  return {.payload_bytes = std::max(tensor.nbytes(), tensor.storage().nbytes / kSliceShare),
          .asks_server = waits_for_server(tensor.source())};
}

nb::object load_value(Archive archive, const LoadOptions& options, const ReportDict& report) {
  const Source file = archive.sources().front();
  const bool is_long = ReadEffort::of(archive).takes_long();
  auto load = [archive = std::move(archive)](const LoadOptions& o) mutable { return std::move(archive).load(o); };
  const Value value = reporting(is_long, options, report, std::move(load));
  return in_file(file.name(), [&value] { return to_python(value); });
}

Tensor load_entry(const PyLazyTensor& entry, const LoadOptions& options, const ReportDict& report) {
  return reporting(ReadEffort::of(entry.tensor).takes_long(), options, report,
                   [tensor = entry.tensor](const LoadOptions& o) { return tensor.load(o); });
}

std::optional<Tensor> array_given(nb::handle object) {
  if (!nb::isinstance<PyLazyTensor>(object)) return array_from(object);
  const auto& entry = nb::cast<const PyLazyTensor&>(object);
  return load_entry(entry, {.verify = entry.verify}, {});
}

void load_placed(Archive archive, std::vector<StoragePlacement> placements, const LoadOptions& options,
                 const ReportDict& report) {
  ReadEffort effort;
  for (const StoragePlacement& placement : placements) effort.payload_bytes += placement.to.nbytes();
  auto load = [archive = std::move(archive), placements = std::move(placements)](const LoadOptions& o) {
    archive.load_storages_into(placements, o);
    return true;
  };
  reporting(effort.takes_long(), options, report, std::move(load));
}

void bind_archive(nb::module_& module) {
  bind_entry_class(module);
  bind_archive_class(module);
  module.def(
      "open",
      [](nb::handle path, nb::handle mode, bool verify) {
        if (!nb::isinstance<nb::str>(mode) || name_from(mode) != "r") throw nb::next_overload();  // bind_writable
        return open_given(path, {.verify = verify});
      },
      nb::arg("path").none(), nb::arg("mode"), nb::arg("verify"));
}

}  // namespace penstock::python
