#include "worker/errors.h"

#include <exception>

#include "content/functions.h"
#include "interpreter/convert.h"

namespace penstock::python {

std::string pickled_cause(const Error& error) {
  if (!error.cause()) return {};
  std::string out;
  try {
    std::rethrow_exception(error.cause());
  } catch (const RaisedInPython& raised) {
    calls_of_python([&] {
      const nb::object bytes = nb::module_::import_("penstock._processes._errors").attr("packed")(raised.exception());
      out.assign(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
    });
  } catch (...) {
    return {};  // of C++
  }
  return out;
}

Error error_with_cause(const ErrorRead& read) {
  if (read.cause.empty()) return read.error;
  Error out = read.error;
  calls_of_python([&] {
    const nb::object exception = nb::module_::import_("penstock._processes._errors")
                                     .attr("unpacked")(nb::bytes(read.cause.data(), read.cause.size()));
    const RaisedInPython raised{exception};
    const ErrorContext numbers{.system_error = read.error.system_error(), .http_status = read.error.http_status()};
    out = Error(read.error.code(), raised.what(), numbers).caused_by(std::make_exception_ptr(raised));
  });
  return out;
}

}  // namespace penstock::python
