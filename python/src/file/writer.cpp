#include "file/writer.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "bindings.h"
#include "call/arguments.h"
#include "content/archive.h"
#include "content/value.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/locations.h"
#include "penstock/error.h"
#include "penstock/writer.h"

namespace penstock::python {
namespace {

/// A writer that threads may share.
class PyWriter {
 public:
  /// A store is asked whether it has the object.
  PyWriter(const std::string& path, const WriterOptions& options)
      : waits_(io::waits_for_server(path)), shared_(interruptible(waits_, [path, options](std::stop_token) {
          return std::make_shared<Shared>(path, options);
        })) {}
  ~PyWriter() {
    // What is on its way to a store is taken back, which may take a moment.
    const ReleasedGil released;
    shared_.reset();
  }
  PyWriter(const PyWriter&) = delete;
  PyWriter& operator=(const PyWriter&) = delete;

  /// act(writer) without the GIL, one at a time. A store may have it wait, which Ctrl-C ends.
  template <class Act>
  void run(Act act) {
    interruptible(waits_, [shared = shared_, act = std::move(act)](std::stop_token) {
      const std::lock_guard lock(shared->mutex);
      act(shared->writer);
    });
  }
  template <class Get>
  auto get(Get get) {
    const ReleasedGil released;
    const std::lock_guard lock(shared_->mutex);
    return get(shared_->writer);
  }

 private:
  struct Shared {
    Shared(std::string_view path, const WriterOptions& options) : writer(path, options) {}
    Writer writer;
    std::mutex mutex;
  };

  bool waits_;
  std::shared_ptr<Shared> shared_;  // with calls that Ctrl-C left behind
};

Tensor array_argument(nb::handle object, const char* call) {
  if (std::optional<Tensor> tensor = array_given(object)) return *std::move(tensor);
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("found an object of type {} where {} takes an array", object_type(object), call));
}

void init(PyWriter* self, nb::handle path, nb::handle format, nb::handle resume, nb::handle dtype, nb::handle row_shape,
          nb::handle compress, nb::handle metadata, nb::handle sync) {
  WriterOptions options;
  if (!format.is_none()) options.format = name_from(format);
  options.resume = flag_argument(resume, "resume");
  if (!dtype.is_none()) options.dtype = dtype_from(dtype);
  if (!row_shape.is_none()) options.row_shape = shape_argument(row_shape);
  options.compress = flag_argument(compress, "compress");
  options.metadata = metadata_from(metadata);
  options.sync = flag_argument(sync, "sync");
  new (self) PyWriter(path_from(path), options);
}

void append(PyWriter& self, nb::handle rows) {
  self.run([tensor = array_argument(rows, "append()")](Writer& writer) { writer.append(tensor); });
}

void append_row(PyWriter& self, nb::handle row) {
  self.run([tensor = array_argument(row, "append_row()")](Writer& writer) { writer.append_row(tensor); });
}

void add(PyWriter& self, nb::handle name, nb::handle given) {
  self.run(
      [name = name_from(name), tensor = array_argument(given, "add()")](Writer& writer) { writer.add(name, tensor); });
}

void add_sample(PyWriter& self, nb::handle sample) {
  self.run([value = from_python(sample)](Writer& writer) { writer.add_sample(value); });
}

void begin(PyWriter& self, nb::handle name, nb::handle dtype, nb::handle shape) {
  self.run([name = name_from(name), dtype = dtype_from(dtype), shape = shape_argument(shape)](Writer& writer) {
    writer.begin(name, dtype, shape);
  });
}

/// A file that cannot be finished is discarded: nobody is left to finish it.
void exit(PyWriter& self, nb::handle type, nb::handle /*value*/, nb::handle /*traceback*/) {
  self.run([failed = !type.is_none()](Writer& writer) {
    if (!writer.is_open()) return;
    if (failed) return writer.discard();
    try {
      writer.finish();
    } catch (...) {
      writer.discard();
      throw;
    }
  });
}

}  // namespace

void bind_writer(nb::module_& module) {
  nb::class_<PyWriter>(module, "Writer")
      .def("__init__", init, nb::arg("path").none(), nb::arg("format").none(), nb::arg("resume"),
           nb::arg("dtype").none(), nb::arg("row_shape").none(), nb::arg("compress"), nb::arg("metadata").none(),
           nb::arg("sync"))
      .def("append", append, nb::arg("rows").none())
      .def("append_row", append_row, nb::arg("row").none())
      .def("add", add, nb::arg("name").none(), nb::arg("tensor").none())
      .def("add_sample", add_sample, nb::arg("sample").none())
      .def("begin", begin, nb::arg("name").none(), nb::arg("dtype").none(), nb::arg("shape").none())
      .def("finish", [](PyWriter& self) { self.run([](Writer& writer) { writer.finish(); }); })
      .def("discard", [](PyWriter& self) { self.run([](Writer& writer) { writer.discard(); }); })
      .def("__enter__", itself<PyWriter>)
      .def("__exit__", exit, nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none())
      .def_prop_ro(
          "is_open", [](PyWriter& self) { return self.get([](const Writer& writer) { return writer.is_open(); }); },
          "False once the file was finished or discarded.")
      .def_prop_ro(
          "rows", [](PyWriter& self) { return self.get([](const Writer& writer) { return writer.rows(); }); },
          "Rows of the `.npy` so far, with those that it had before; else of the tensor begun last.")
      .def_prop_ro(
          "nbytes", [](PyWriter& self) { return self.get([](const Writer& writer) { return writer.nbytes(); }); },
          "Bytes of elements that this writer was given.")
      .def_prop_ro(
          "path",
          [](PyWriter& self) {
            return path_text(self.get([](const Writer& writer) { return std::string(writer.path()); }));
          },
          "Where the file goes.");
}

}  // namespace penstock::python
