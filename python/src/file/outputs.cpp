// Bytes in and out of files and stores for the Python packages that write formats of their own: torch's checkpoints,
// and datasets of Ray.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "content/value.h"
#include "file/writer.h"
#include "format/part_names.h"
#include "format/save_with.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "io/file/atomic_file.h"
#include "io/file/output.h"
#include "io/file/output_set.h"
#include "io/locations.h"
#include "io/remote/list.h"
#include "io/remote/location.h"
#include "io/remote/object.h"
#include "io/remote/upload.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::python {
namespace {

using PartTexts = std::vector<std::pair<std::string, std::string>>;
using Ticket = std::pair<std::string, PartTexts>;

Ticket ticket_of(const io::remote::PreparedParts& prepared) {
  PartTexts parts;
  for (const io::remote::UploadedPart& part : prepared.parts) parts.emplace_back(part.etag, part.crc32);
  return {prepared.id, std::move(parts)};
}

/// A file or an object that is written from front to end. Threads may share it: one at a time writes, and `cancel` does
/// not wait for it.
class PyOutput {
 public:
  PyOutput(nb::handle path, bool sync, bool replaces)
      : output_(io::open_output(path_from(path), {.sync = sync,
                                                  .existing = replaces ? io::Existing::kReplace : io::Existing::kRefuse,
                                                  .stop = stop_.get_token()})) {}
  ~PyOutput() { discard(); }
  PyOutput(const PyOutput&) = delete;
  PyOutput& operator=(const PyOutput&) = delete;

  std::uint64_t write(nb::handle data) {
    Py_buffer view;
    if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) nb::raise_python_error();
    struct Release {
      Py_buffer& view;
      ~Release() { PyBuffer_Release(&view); }
    } const release{view};
    const auto bytes = std::span(static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len));
    const ReleasedGil released;
    const std::scoped_lock lock(mutex_);
    opened().write(bytes);
    return bytes.size();
  }
  std::uint64_t tell() {
    const ReleasedGil released;
    const std::scoped_lock lock(mutex_);
    return opened().position();
  }
  void commit() {
    const ReleasedGil released;
    const std::scoped_lock lock(mutex_);
    opened().commit();
    output_.reset();
  }
  void discard() {
    const ReleasedGil released;
    const std::scoped_lock lock(mutex_);
    output_.reset();
  }
  void cancel() { stop_.request_stop(); }
  int duplicate() {
    const ReleasedGil released;
    const std::scoped_lock lock(mutex_);
    auto* const file = dynamic_cast<io::AtomicFile*>(&opened());
    if (file == nullptr) throw Error(ErrorCode::kInvalidArgument, "an object in a store has no descriptor");
    return file->duplicate();
  }

 private:
  io::Output& opened() {
    if (output_ == nullptr) throw Error(ErrorCode::kInvalidArgument, "what is written is complete, or was discarded");
    return *output_;
  }

  std::stop_source stop_;
  std::mutex mutex_;  ///< taken without the GIL
  std::unique_ptr<io::Output> output_;
};

/// Writes all that `save` writes into a store, and leaves the last step to whoever gets the ticket.
std::pair<Ticket, std::uint64_t> save_parts(nb::handle object, nb::handle url, nb::handle metadata) {
  const std::string target = path_from(url);
  SaveOptions options;
  options.metadata = metadata_from(metadata);
  return interruptible(true, [value = from_python(object), target, options](const std::stop_token& stop) {
    SaveOptions how = options;
    how.stop = stop;
    const std::unique_ptr<io::Output> out = format::prepare_save(value, target, how, {});
    auto* const upload = dynamic_cast<io::remote::Upload*>(out.get());
    if (upload == nullptr) throw Error(ErrorCode::kInvalidArgument, "only objects in stores have parts", {target});
    const std::uint64_t bytes = upload->position();
    return std::pair(ticket_of(upload->hand_over()), bytes);
  });
}

/// All objects appear, or none of them where a store refuses one.
void complete(const std::vector<std::pair<std::string, Ticket>>& tickets) {
  interruptible(true, [tickets](std::stop_token) {
    std::vector<std::unique_ptr<io::remote::Upload>> uploads;
    for (const auto& [url, ticket] : tickets) {
      io::remote::PreparedParts prepared{.id = ticket.first, .parts = {}};
      for (const auto& [etag, crc32] : ticket.second) prepared.parts.push_back({etag, crc32});
      uploads.push_back(std::make_unique<io::remote::Upload>(io::remote::parse_object(url), std::move(prepared),
                                                             io::Existing::kReplace));
    }
    io::OutputSet all;
    for (std::size_t i = 0; i + 1 < uploads.size(); ++i) all.commit(tickets[i].first, *uploads[i]);
    if (!uploads.empty()) all.commit_last(*uploads.back());
  });
}

/// Takes back all uploads of a folder in a store in whose names `word` is, which were begun and not completed.
void abort_uploads(nb::handle url, const std::string& word) {
  std::string target = path_from(url);
  if (!target.ends_with('/')) target += '/';
  interruptible(true, [target, word](std::stop_token) {
    io::remote::Location object = io::remote::parse(target);
    const std::string folder = object.key;
    bool some = io::remote::lists_uploads(object);
    std::set<std::string> ended;  // a store may list them for a while still
    while (some) {
      some = false;
      for (const io::remote::Begun& begun : io::remote::list_uploads(object, folder)) {
        if (begun.key.find(word) == begun.key.npos) continue;
        object.key = begun.key;
        some = (io::remote::abort_parts(object, begun.id) && ended.insert(begun.id).second) || some;
      }
    }
  });
}

/// The names of what lies in a folder of a store; of folders in it with '/' at the end.
std::vector<std::string> names_in(nb::handle url) {
  std::string target = path_from(url);
  if (!target.ends_with('/')) target += '/';
  return interruptible(true, [target](std::stop_token) { return io::names_in(target); });
}

void remove(nb::handle url) {
  const std::string target = path_from(url);
  const ReleasedGil released;
  io::remote::remove_object(io::remote::parse_object(target));
}

nb::bytes read(const Source& source, std::uint64_t offset, std::uint64_t length) {
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(length));
  interruptible(true, [source, offset, bytes](std::stop_token) { source.read(offset, *bytes); });
  return nb::bytes(bytes->data(), bytes->size());
}

/// An opened file or object, of which ranges are read.
struct PyBytes {
  Source source;
};

PyBytes open_bytes(nb::handle path) {
  return {interruptible(true, [target = path_from(path)](std::stop_token) { return open_source(target); })};
}

}  // namespace

void bind_outputs(nb::module_& module) {
  nb::class_<PyOutput>(module, "_Output")
      .def(nb::init<nb::handle, bool, bool>(), nb::arg("path"), nb::arg("sync") = true, nb::arg("replaces") = true)
      .def("write", &PyOutput::write, nb::arg("data"))
      .def("tell", &PyOutput::tell)
      .def(
          "flush", [](PyOutput&) {})
      .def("commit", &PyOutput::commit)
      .def("discard", &PyOutput::discard)
      .def("cancel", &PyOutput::cancel)
      .def("duplicate", &PyOutput::duplicate);
  nb::class_<PyBytes>(module, "_Bytes")
      .def_prop_ro(
          "size", [](const PyBytes& self) { return self.source.size(); })
      .def(
          "read",
          [](const PyBytes& self, std::uint64_t at, std::uint64_t length) { return read(self.source, at, length); },
          nb::arg("offset"), nb::arg("length"));
  module.def("_open_bytes", open_bytes, nb::arg("path"));
  module.def("_save_parts", save_parts, nb::arg("obj").none(), nb::arg("url"), nb::arg("metadata") = nb::none());
  module.def("_complete_parts", complete, nb::arg("tickets"));
  module.def("_abort_uploads", abort_uploads, nb::arg("url"), nb::arg("word"));
  module.def("_names_in", names_in, nb::arg("url"));
  module.def("_require_all_parts", format::require_all_parts, nb::arg("names"), nb::arg("folder"));
  module.def("_remove", remove, nb::arg("url"));
}

}  // namespace penstock::python
