// penstock.WritableArchive.

#include "penstock/writable.h"

#include <nanobind/stl/string.h>

#include <string>

#include "bindings.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

constexpr const char* kGet = R"(The tensor of a name, as a view of the file.

Parameters
----------
name
    The tensor's name.

Raises
------
KeyNotFoundError
    Where there is no such tensor.
UnsupportedError
    Where the file does not hold it as its values are: compressed, in the other byte order, not
    aligned.
ChecksumError
    Where its bytes do not have the checksum that the file records. With `verify=False` it is given
    all the same, and its checksum is never mended.)";

ListOf<nb::str> keys(const WritableArchive& archive) {
  return list_of(archive.entries(), [](const TensorEntry& entry) { return text_from(entry.name); });
}

void flush(WritableArchive& archive) {
  const ReleasedGil released;
  archive.flush();
}

void close(WritableArchive& archive) {
  const ReleasedGil released;
  archive.close();
}

/// penstock.open with a mode other than "r".
nb::object open_to_write(nb::handle path, nb::handle mode, bool verify) {
  if (!nb::isinstance<nb::str>(mode) || name_from(mode) != "r+") {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("mode is \"r\" to read or \"r+\" to change tensors in place, and not {}", shown(mode)));
  }
  return nb::cast([path = path_from(path), verify] {
    const ReleasedGil released;
    return open_writable(path, {.verify = verify});
  }());
}

}  // namespace

void bind_writable(nb::module_& module) {
  nb::class_<WritableArchive>(module, "WritableArchive", nb::sig("class WritableArchive(WritableArchiveMethods)"),
                              "WritableArchive()\n--\n\n")
      .def_prop_ro(
          "format", [](const WritableArchive& archive) { return std::string(archive.format()); },
          "The file's format, \"safetensors\".")
      .def_prop_ro(
          "path", [](const WritableArchive& archive) { return path_text(archive.path()); }, "The file.")
      .def_prop_ro(
          "tensor",
          [](const WritableArchive& archive) {
            const ReleasedGil released;
            return archive.tensor();
          },
          "The only tensor of the file, as a view of it.")
      .def("_keys", keys)
      .def(
          "__getitem__",
          [](const WritableArchive& archive, nb::handle name) {
            const std::string text = name_from(name);
            const ReleasedGil released;
            return archive[text];
          },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> Tensor"), kGet)
      .def(
          "__contains__",
          [](const WritableArchive& archive, nb::handle name) {
            return nb::isinstance<nb::str>(name) && archive.contains(name_from(name));
          },
          nb::arg("name").none())
      .def("__len__", [](const WritableArchive& archive) { return archive.entries().size(); })
      .def("__iter__", [](const WritableArchive& archive) -> IteratorOf<nb::str> { return nb::iter(keys(archive)); })
      .def("_flush", flush)
      .def("_close", close)
      .def("__enter__", itself<WritableArchive>)
      .def(
          "__exit__",
          [](WritableArchive& archive, nb::handle /*type*/, nb::handle /*value*/, nb::handle /*traceback*/) {
            close(archive);
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none());
  module.def("open", open_to_write, nb::arg("path").none(), nb::arg("mode").none(), nb::arg("verify"));
}

}  // namespace penstock::python
