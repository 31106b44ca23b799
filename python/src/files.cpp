// penstock.load and penstock.save.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <map>
#include <optional>

#include "archive.h"
#include "bindings.h"
#include "convert.h"
#include "core/format.h"
#include "core/stopwatch.h"
#include "interrupt.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "value.h"

namespace penstock::python {
namespace {

nb::object load(nb::handle path, const LoadArguments& arguments, bool verify, nb::handle key, nb::handle prefix,
                const ReportDict& report) {
  core::Stopwatch watch;
  const LoadOptions options = arguments.options(verify);
  PyArchive archive = open_archive(path_from(path), {.verify_checksums = verify});
  nb::object loaded = load_value(part_of(archive.take(), key, prefix), options, report);
  if (report) (*report)["total_seconds"] = watch.total();
  return loaded;
}

std::optional<std::map<std::string, std::string>> metadata_from(nb::handle metadata) {
  if (metadata.is_none()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : nb::cast<nb::dict>(metadata)) {
    if (!PyUnicode_Check(key.ptr()) || !PyUnicode_Check(value.ptr())) {
      throw Error(ErrorCode::kDTypeMismatch, core::format("found metadata {}: {}, expected strings for both",
                                                          nb::repr(key).c_str(), nb::repr(value).c_str()));
    }
    out.emplace(name_from(key), name_from(value));
  }
  return out;
}

void write(nb::handle object, const std::string& target, const SaveOptions& options, nb::handle describe = {}) {
  const Value value = [&] {
    try {
      return from_python(object, describe);
    } catch (const Error& error) {
      throw error.within({.path = target});
    }
  }();
  interruptible(true, [value, target, options = SaveOptions(options)](std::stop_token stop) mutable {
    options.stop = std::move(stop);
    penstock::save(value, target, options);
  });
}

void save(nb::handle object, nb::handle path, nb::handle format, bool compress, nb::handle metadata, bool sync) {
  SaveOptions options;
  if (!format.is_none()) options.format = name_from(format);
  options.compress = compress;
  options.metadata = metadata_from(metadata);
  options.sync = sync;
  write(object, path_from(path), options);
}

}  // namespace

void bind_files(nb::module_& module) {
  module.def(
      "load",
      [](nb::handle path, nb::handle device, std::optional<bool> mmap, bool verify, std::optional<bool> direct,
         std::optional<bool> gds, std::optional<std::int64_t> threads, nb::handle key, nb::handle prefix,
         const ReportDict& report) {
        return load(path, {device, mmap, direct, gds, threads}, verify, key, prefix, report);
      },
      nb::arg("path").none(), nb::arg("device") = "cpu", nb::arg("mmap") = nb::none(), nb::kw_only(),
      nb::arg("verify") = true, nb::arg("direct") = nb::none(), nb::arg("gds") = nb::none(),
      nb::arg("threads") = nb::none(), nb::arg("key") = nb::none(), nb::arg("prefix") = nb::none(),
      nb::arg("report") = nb::none(),
      nb::sig("def load(path: str | bytes | os.PathLike[str], device: object = 'cpu', mmap: bool | None = None, *, "
              "verify: bool = True, direct: bool | None = None, gds: bool | None = None, threads: int | None = None, "
              "key: str | int | typing.Sequence[str | int] | None = None, prefix: str | None = None, "
              "report: dict[str, typing.Any] | None = None) -> typing.Any"),
      "Everything in a tensor file: a Tensor for one bare array, a dict for `.npz` and `.safetensors`, for `.pt` "
      "what was saved. Nothing in the file is run: objects of unknown classes become penstock.Opaque. `mmap=True` "
      "maps the file instead of reading it and gives read-only tensors. `verify=False` does not look at recorded "
      "checksums. What the page cache does not hold is read past it; `direct=True` reads all so where the file system "
      "can, `direct=False` nothing. `gds` is whether a device is filled by GPUDirect Storage, where PENSTOCK_GDS is "
      "not to say; `threads` how many read, where the machine is not. `key` chooses a part of the content, of which "
      "alone the bytes are read: a key, several with dots between them (\"optimizer.state.0\"), or a list of keys and "
      "positions; `prefix` chooses the keys of a dict that begin with it, and leaves it out of them. A dict given as "
      "`report` is filled with how the "
      "file was read: \"route\", \"why\" in a sentence, bytes and seconds.");
  module.def(
      "_save_with",
      [](nb::handle object, nb::handle path, nb::handle describe) {
        write(object, path_from(path), {.format = "pt"}, describe);
      },
      nb::arg("obj").none(), nb::arg("path"), nb::arg("describe"),
      nb::sig("def _save_with(obj: object, path: str | bytes | os.PathLike[str], "
              "describe: typing.Callable[[typing.Any], typing.Any]) -> None"));
  module.def("save", save, nb::arg("obj").none(), nb::arg("path").none(), nb::kw_only(), nb::arg("format") = nb::none(),
             nb::arg("compress") = false, nb::arg("metadata") = nb::none(), nb::arg("sync") = true,
             nb::sig("def save(obj: object, path: str | bytes | os.PathLike[str], *, format: str | None = None, "
                     "compress: bool = False, metadata: dict[str, str] | None = None, sync: bool = True) -> None"),
             "Writes tensors, arrays of any library, and for `.pt` nested dicts, lists, tuples, numbers and strings of "
             "them, so that NumPy, PyTorch and safetensors read the file. The format is `format` (\"npy\", \"npz\", "
             "\"pt\", \"safetensors\") or the extension of `path`. The file appears whole or not at all. `compress` "
             "deflates an `.npz`; `metadata` is for `.safetensors`. `sync=False` does not wait until the disk has the "
             "file, as numpy.save and torch.save do not: faster, but a machine that loses power may lose the file.");
}

}  // namespace penstock::python
