// A source whose bytes a function of Python brings. Threads of a load call it at once, each for a range of its own, and
// take the GIL for the call, as many as bring more (ByteSource::waits); the function gives it up while it waits for its
// bytes, as fsspec and obstore do.

#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "call/arguments.h"
#include "content/contents.h"
#include "content/functions.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "io/source/source.h"
#include "penstock/error.h"
#include "penstock/remote.h"

namespace penstock::python {
namespace {

class FunctionSource final : public ByteSource {
 public:
  /// Needs the GIL.
  FunctionSource(std::string_view name, std::uint64_t size, const HeldFunction& read)
      : name_(core::shown_path(name)), size_(size), read_(read.lent()), kept_(keep_alive(read.keeper())) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return size_; }
  bool waits() const noexcept override { return true; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    io::require_inside(*this, offset, into.size());
    if (into.empty()) return;
    try {
      read_(offset, into);
    } catch (const Error& error) {
      throw error.within({.path = name_, .offset = offset});
    }
  }

 private:
  std::string name_;
  std::uint64_t size_;
  HeldFunction read_;
  std::shared_ptr<const void> kept_;  ///< what keeps the function
};

PySource source_from(nb::handle read, std::uint64_t size, nb::handle name, nb::tuple made) {
  return {std::make_shared<FunctionSource>(path_from(name), size, HeldFunction(read, "a source")), std::move(made)};
}

void take(const nb::dict& given, const char* name, std::optional<double>& to) {
  if (given.contains(name)) to = number_argument(nb::object(given[name]), name);
}

/// It may be a secret, so that an error does not show it.
void take(const nb::dict& given, const char* name, std::optional<std::string>& to) {
  if (!given.contains(name)) return;
  const nb::object text = given[name];
  if (PyUnicode_Check(text.ptr()) != 0) {
    to = name_from(text);
    return;
  }
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("found {} as an object of type {}, expected a text", name, object_type(text)));
}

/// Of the options that Python's RemoteOptions has.
RemoteOptions options_from(const nb::dict& given) {
  RemoteOptions out;
  take(given, "timeout", out.timeout);
  take(given, "retry_seconds", out.retry_seconds);
  take(given, "hedges", out.hedges);
  if (given.contains("requests")) out.requests = integer_argument(nb::object(given["requests"]), "requests");
  take(given, "endpoint", out.endpoint);
  take(given, "addressing", out.addressing);
  take(given, "region", out.region);
  take(given, "access_key_id", out.access_key_id);
  take(given, "secret_access_key", out.secret_access_key);
  take(given, "session_token", out.session_token);
  take(given, "account", out.account);
  take(given, "account_key", out.account_key);
  take(given, "sas_token", out.sas_token);
  take(given, "token", out.token);
  if (given.contains("anonymous")) out.anonymous = flag_argument(nb::object(given["anonymous"]), "anonymous");
  if (!given.contains("cache")) return out;
  const nb::dict cache = nb::cast<nb::dict>(given["cache"]);
  out.cache.emplace();
  if (cache.contains("folder")) out.cache->folder = path_from(cache["folder"]);
  if (cache.contains("max_bytes")) out.cache->max_bytes = count_argument(nb::object(cache["max_bytes"]), "max_bytes");
  if (cache.contains("trust_seconds")) {
    out.cache->trust_seconds = number_argument(nb::object(cache["trust_seconds"]), "trust_seconds");
  }
  return out;
}

PySource open_by_options(nb::handle location, const nb::dict& options, nb::tuple made) {
  auto source = interruptible(
      true, [at = path_from(location), how = options_from(options)](std::stop_token) { return open_source(at, how); });
  return {std::move(source), std::move(made)};
}

}  // namespace

void bind_sources(nb::module_& module) {
  nb::class_<PySource>(module, "Source", R"(Source()
--

A file of another library's file system, or one with options of its own, which `penstock.open`, `load`, `load_into` and
`rows` take in place of a path.

Made by `penstock.remote`. Any number of threads may read it.)")
      .def_prop_ro(
          "name", [](const PySource& self) { return path_text(self.source.name()); }, "What errors call it.")
      .def_prop_ro(
          "size", [](const PySource& self) { return self.source.size(); }, "Its bytes.")
      .def("__reduce__", [](const PySource& self) { return self.made; })
      .def("__repr__", [](const PySource& self) {
        return nb::str("penstock.remote.Source({}, {} bytes)")
            .format(path_text(self.source.name()), self.source.size());
      });
  module.def("_source_from", source_from, nb::arg("read"), nb::arg("size"), nb::arg("name"), nb::arg("made"));
  module.def("_open_source", open_by_options, nb::arg("location"), nb::arg("options"), nb::arg("made"));
}

}  // namespace penstock::python
