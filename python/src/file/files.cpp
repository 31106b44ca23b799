// penstock.load and penstock.save.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "call/progress.h"
#include "content/archive.h"
#include "content/contents.h"
#include "content/value.h"
#include "core/checked.h"
#include "core/format.h"
#include "core/stopwatch.h"
#include "core/url_scheme.h"
#include "file/raw.h"
#include "file/writer.h"
#include "format/save_with.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/file/output.h"
#include "io/file/url.h"
#include "io/locations.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "penstock/source.h"
#include "value/graph.h"

namespace penstock::python {
namespace {

nb::object load(nb::handle path, const LoadArguments& arguments, bool verify, nb::handle key, nb::handle prefix,
                const ReportDict& report) {
  core::Stopwatch watch;
  const LoadOptions options = arguments.options(verify);
  PyArchive archive = open_given(path, {.verify = verify});
  nb::object loaded = load_value(part_of(archive.take(), key, prefix), options, report);
  if (report) (*report)["total_seconds"] = watch.total();
  return loaded;
}

/// The array in a file without a header.
nb::object load_headerless(nb::handle path, LoadArguments arguments, const RawArguments& layout, nb::handle key,
                           nb::handle prefix, const ReportDict& report) {
  if (!key.is_none() || !prefix.is_none() || flag_argument(arguments.strict, "strict")) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "found key=, prefix= or strict= beside shape=, offset= or order=: a file without a header has one "
        "array, and dtype= is what its elements are; load it with penstock.raw(...).load(dtype=) to convert it");
  }
  const nb::object none = nb::none();
  arguments.dtype = none;
  const nb::object source = is_path_not_content(path) ? path_text(path_from(path)) : nb::borrow(path);
  return nb::cast(load_entry(open_raw(source, layout, false), arguments.options(true), report));
}

Value value_for(nb::handle object, const std::string& target, nb::handle describe = {}) {
  try {
    return from_python(object, describe);
  } catch (const Error& error) {
    throw error.within({.path = target});
  }
}

/// Whether somebody may want to stop the call. A thread for what is written sooner costs more than the writing, and a
/// busy machine lets it wait. What a server or the disk itself has to confirm takes as long as they like.
bool takes_long(const Value& value, const std::string& target, const SaveOptions& options) {
  constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 20;
  constexpr std::size_t kManyParts = 4096;
  if (options.sync || io::waits_for_server(target)) return true;
  std::uint64_t bytes = 0;
  std::vector<const ValueGraph::Node*> waiting{ValueGraph::node_of(value)};
  // Parts are counted once for each way that leads to them, so that a cycle ends here too.
  for (std::size_t parts = 0; !waiting.empty(); ++parts) {
    const ValueGraph::Node* const node = waiting.back();
    waiting.pop_back();
    if (node == nullptr) continue;
    if (const auto* tensor = std::get_if<ValueGraph::Node::TensorPtr>(&node->scalar)) bytes += (*tensor)->nbytes();
    if (const auto* text = std::get_if<std::string>(&node->scalar)) bytes += text->size();
    if (bytes >= kManyBytes || parts + waiting.size() + node->items.size() >= kManyParts) return true;
    for (const Value& item : node->items) waiting.push_back(ValueGraph::node_of(item));
    if (node->state) waiting.push_back(ValueGraph::node_of(*node->state));
  }
  return false;
}

void write(const Value& value, const std::string& target, const SaveOptions& options) {
  interruptible(takes_long(value, target, options),
                [value, target, options = SaveOptions(options)](std::stop_token stop) mutable {
                  options.stop = std::move(stop);
                  penstock::save(value, target, options);
                });
}

SaveOptions save_options(nb::handle format, bool compress, nb::handle metadata, bool sync) {
  SaveOptions options;
  if (!format.is_none()) options.format = name_from(format);
  options.compress = compress;
  options.metadata = metadata_from(metadata);
  options.sync = sync;
  return options;
}

void save(nb::handle object, nb::handle path, nb::handle format, bool compress, nb::handle metadata, bool sync,
          nb::handle progress) {
  const std::string target = path_from(path);
  const SaveOptions options = save_options(format, compress, metadata, sync);
  with_progress(progress, "saving", path, [value = value_for(object, target), target, options] {
    write(value, target, options);
    return nb::object(nb::none());
  });
}

/// A `bytes` of Python's that grows while it is written, from any thread.
class BytesSink final : public io::ByteSink {
 public:
  /// With the GIL. `expected`: about how many bytes will come.
  explicit BytesSink(std::uint64_t expected) { resize(expected); }
  ~BytesSink() override {
    if (bytes_ != nullptr) let_go_with_gil([this] { Py_DECREF(bytes_); });
  }
  BytesSink(const BytesSink&) = delete;
  BytesSink& operator=(const BytesSink&) = delete;

  void write(std::span<const std::byte> bytes) override {
    if (bytes.size() > room_ - used_) {
      const AcquiredGil held;
      resize(std::max<std::uint64_t>(room_ + room_ / 2, core::checked_add<std::uint64_t>(used_, bytes.size(), "size")));
    }
    std::memcpy(PyBytes_AS_STRING(bytes_) + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }
  std::uint64_t position() const noexcept override { return used_; }
  /// With the GIL, once, last.
  nb::object take() {
    resize(used_);
    return nb::steal(std::exchange(bytes_, nullptr));
  }

 private:
  void resize(std::uint64_t size) {
    const auto wanted = static_cast<Py_ssize_t>(size);
    if (bytes_ == nullptr) {
      bytes_ = PyBytes_FromStringAndSize(nullptr, wanted);
    } else if (_PyBytes_Resize(&bytes_, wanted) != 0) {
      bytes_ = nullptr;
    }
    room_ = size;
    if (bytes_ != nullptr) return;
    PyErr_Clear();
    room_ = used_ = 0;
    throw Error(ErrorCode::kOutOfMemory, core::format("there is no memory for a file of {} bytes", size));
  }

  PyObject* bytes_ = nullptr;
  std::uint64_t room_ = 0;
  std::uint64_t used_ = 0;
};

/// The bytes that `save` writes; None where the tensors have more than `most`. `describe` is that of _save_with.
Typed<std::optional<nb::bytes>> saved(nb::handle object, const std::string& name, const std::string& format,
                                      nb::handle describe, nb::handle metadata, nb::handle progress,
                                      std::uint64_t most) {
  constexpr std::uint64_t kHeaders = std::uint64_t{64} << 10;  // room for those of a file with some hundred tensors
  constexpr std::uint64_t kLong = std::uint64_t{64} << 20;     // what is copied sooner needs no thread
  const Value value = value_for(object, name, describe.is_none() ? nb::handle() : describe);
  const std::uint64_t bytes = format::tensor_bytes(value);
  if (bytes > most) return nb::none();
  SaveOptions options = save_options(nb::none(), false, metadata, false);
  options.format = format;
  const auto sink = std::make_shared<BytesSink>(bytes + kHeaders);
  with_progress(progress, "saving", nb::str(name.c_str()), [value, bytes, name, options, sink] {
    interruptible(bytes >= kLong, [value, name, options, sink](std::stop_token stop) {
      SaveOptions stoppable = options;
      stoppable.stop = std::move(stop);
      format::save_to(value, *sink, name, stoppable);
    });
    return nb::object(nb::none());
  });
  return sink->take();
}

/// Whether the path is a URL of a store. kUnsupported for URLs that nothing can be written to.
bool goes_to_store(nb::handle path) {
  const std::string target = path_from(path);
  io::require_output(target);
  return io::waits_for_server(target);
}

/// Puts a file of this machine there.
void put_file(nb::handle source, nb::handle url) {
  interruptible(true, [from = path_from(source), to = path_from(url)](std::stop_token stop) {
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
    const Source file = open_source(from);
    const std::uint64_t size = file.size();
    const auto out = io::open_output(to, {.bytes = [size] { return size; }, .stop = std::move(stop)});
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      piece.resize(std::min(kPiece, size - at));
      file.read(at, piece);
      out->write(piece);
    }
    out->commit();
  });
}

/// What save_async took from the program's objects, on its way to a file.
struct HeldValue {
  Value value;

  void save(nb::handle path, nb::handle format, bool compress, nb::handle metadata, bool sync) const {
    write(value, path_from(path), save_options(format, compress, metadata, sync));
  }
};

HeldValue hold(nb::handle object, bool copy) {
  HeldValue held{from_python(object)};
  if (copy) {
    const ReleasedGil released;
    held.value = held.value.to(Device{}, {.copy = true});
  }
  return held;
}

}  // namespace

std::optional<std::map<std::string, std::string>> metadata_from(nb::handle metadata) {
  if (metadata.is_none()) return std::nullopt;
  std::map<std::string, std::string> out;
  // A copy, as other threads may change it meanwhile.
  const nb::object copy = checked(PyDict_Copy(nb::cast<nb::dict>(metadata).ptr()));
  for (const auto& [key, value] : nb::borrow<nb::dict>(copy)) {
    if (!PyUnicode_Check(key.ptr()) || !PyUnicode_Check(value.ptr())) {
      throw Error(ErrorCode::kDTypeMismatch,
                  core::format("found metadata {}: {}, expected strings for both", shown(key), shown(value)));
    }
    out.emplace(name_from(key), name_from(value));
  }
  return out;
}

void bind_files(nb::module_& module) {
  module.def(
      "load",
      [](nb::handle path, nb::handle device, std::optional<bool> mmap, bool verify, std::optional<bool> direct,
         std::optional<bool> gds, std::optional<std::int64_t> threads, nb::handle key, nb::handle prefix,
         const ReportDict& report, nb::handle progress, nb::handle dtype, nb::handle strict, nb::handle shape,
         nb::handle offset, nb::handle order, nb::handle shared, nb::handle pinned) {
        return with_progress(
            progress, "loading", path,
            [path = nb::borrow(path), device = nb::borrow(device), key = nb::borrow(key), prefix = nb::borrow(prefix),
             dtype = nb::borrow(dtype), strict = nb::borrow(strict), shape = nb::borrow(shape),
             offset = nb::borrow(offset), order = nb::borrow(order), mmap, verify, direct, gds, threads, report,
             is_shared = flag_argument(shared, "shared"), is_pinned = flag_argument(pinned, "pinned")] {
              const LoadArguments arguments = {device, mmap, direct, gds, threads, dtype, strict, is_shared, is_pinned};
              if (const RawArguments layout = {dtype, shape, offset, order}; layout.say_headerless()) {
                return load_headerless(path, arguments, layout, key, prefix, report);
              }
              return load(path, arguments, verify, key, prefix, report);
            });
      },
      nb::arg("path").none(), nb::arg("device"), nb::arg("mmap").none(), nb::arg("verify"), nb::arg("direct").none(),
      nb::arg("gds").none(), nb::arg("threads").none(), nb::arg("key").none(), nb::arg("prefix").none(),
      nb::arg("report").none(), nb::arg("progress").none(), nb::arg("dtype").none(), nb::arg("strict"),
      nb::arg("shape").none(), nb::arg("offset").none(), nb::arg("order").none(), nb::arg("shared").none(),
      nb::arg("pinned").none());
  module.def(
      "_save_with",
      [](nb::handle object, nb::handle path, nb::handle describe, nb::handle progress, bool sync) {
        const std::string target = path_from(path);
        with_progress(progress, "saving", path, [value = value_for(object, target, describe), target, sync] {
          write(value, target, {.format = "pt", .sync = sync});
          return nb::object(nb::none());
        });
      },
      nb::arg("obj").none(), nb::arg("path"), nb::arg("describe"), nb::arg("progress") = nb::none(),
      nb::arg("sync") = false);
  module.def("_saved", saved, nb::arg("obj").none(), nb::arg("name"), nb::arg("format"), nb::arg("describe").none(),
             nb::arg("metadata").none(), nb::arg("progress").none(), nb::arg("most"));
  module.def("_goes_to_store", goes_to_store, nb::arg("path"));
  module.def(
      "_absolute", [](nb::handle path) { return text_from(io::absolute_or_same(name_from(path))); }, nb::arg("path"));
  module.def("_is_url", io::is_url, nb::arg("path"));
  module.def("_is_in_store", io::is_in_store, nb::arg("path"));
  module.def("_store_schemes", core::store_schemes, nb::arg("word"));
  module.def("_put_file", put_file, nb::arg("source"), nb::arg("url"));
  module.def("save", save, nb::arg("obj").none(), nb::arg("path").none(), nb::arg("format").none(), nb::arg("compress"),
             nb::arg("metadata").none(), nb::arg("sync"), nb::arg("progress").none());
  nb::class_<HeldValue>(module, "_HeldValue")
      .def("save", &HeldValue::save, nb::arg("path"), nb::arg("format").none(), nb::arg("compress"),
           nb::arg("metadata").none(), nb::arg("sync"));
  module.def("_hold", hold, nb::arg("obj").none(), nb::arg("copy"));
}

}  // namespace penstock::python
