#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bindings.h"
#include "call/refused_call.h"
#include "content/functions.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

constexpr int kCodeCount = static_cast<int>(ErrorCode::kCancelled) + 1;

/// [(code's name, the built-in exception's name)]
ListOf<TupleOf<nb::str, nb::str>> error_codes() {
  nb::list out;
  for (int code = 0; code < kCodeCount; ++code) {
    const ErrorCodeInfo& info = error_code_info(static_cast<ErrorCode>(code));
    out.append(
        nb::make_tuple(nb::str(info.name.data(), info.name.size()), nb::str(info.python.data(), info.python.size())));
  }
  return out;
}

nb::object number_or_none(std::optional<int> number) { return number ? nb::object(nb::int_(*number)) : nb::none(); }

nb::object text_or_none(std::string_view bytes) { return bytes.empty() ? nb::none() : path_text(bytes); }

/// Texts of Python may hold any code points, halves of surrogate pairs too.
Typed<nb::str> without_secrets(const nb::str& given) {
  const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(given.ptr(), "utf-8", "surrogatepass"));
  if (!bytes.is_valid()) throw nb::python_error();
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
  const std::string shown = core::without_secrets({data, static_cast<std::size_t>(size)});
  return nb::steal(PyUnicode_DecodeUTF8(shown.data(), static_cast<Py_ssize_t>(shown.size()), "surrogatepass"));
}

/// The error with the argument's name, where one was of a wrong type.
Error with_argument(const Error& error) {
  try {
    const std::string sentence = naming_argument(error.what(), ErrorBy::kPenstock);
    const std::string_view said = error.what();
    if (!sentence.ends_with(said)) return Error(ErrorCode::kDTypeMismatch, sentence);
    return sentence == said ? error : error.prefixed(sentence.substr(0, sentence.size() - said.size()));
  } catch (const std::exception&) {
    PyErr_Clear();
    return error;
  }
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    // Whoever is told so in another thread than the first is a daemon, as a rule, which Python ends without a word.
    if (error.code() == ErrorCode::kCancelled && Running::is_ending() && !signals_arrive_here()) {
      const ReleasedGil released;
      std::this_thread::sleep_for(kExitPatience);
    }
    const bool may_be_of_argument =
        error.code() == ErrorCode::kDTypeMismatch || error.code() == ErrorCode::kInvalidArgument;
    set_python_error(may_be_of_argument && !error.cause() ? with_argument(error) : error);
  }
}

}  // namespace

nb::object exception_of(const Error& error) {
  const nb::object make = nb::module_::import_("penstock.errors").attr("_make");
  const nb::object offset = error.offset() ? nb::object(nb::int_(*error.offset())) : nb::none();
  const std::string_view code = error_code_info(error.code()).name;
  // Paths and messages may hold any bytes of a file's name.
  nb::object out = make(nb::str(code.data(), code.size()), path_text(error.what()), path_text(error.message()),
                        text_or_none(error.path()), offset, text_or_none(error.tensor()),
                        number_or_none(error.system_error()), number_or_none(error.http_status()));
  if (const nb::object raised = raised_in_python(error); raised.is_valid()) nb::setattr(out, "__cause__", raised);
  return out;
}

void warn(nb::handle category, const std::string& text) {
  int level = 1;
  auto frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (; frame.is_valid() && !frame.is_none(); frame = frame.attr("f_back"), ++level) {
    const nb::object name = frame.attr("f_globals").attr("get")("__name__");
    const bool is_text = PyUnicode_Check(name.ptr()) != 0;
    if (!is_text || !std::string_view(nb::cast<std::string>(name)).starts_with("penstock.")) break;
  }
  const nb::object told = path_text(text);  // it may name a file, whose name is any bytes
  if (PyErr_WarnFormat(category.ptr(), level, "%U", told.ptr()) != 0) nb::raise_python_error();
}

void set_python_error(const Error& error) noexcept {
  try {
    nb::object exception = raised_in_python(error);
    if (!exception.is_valid()) exception = exception_of(error);
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  } catch (nb::python_error& failure) {
    failure.restore();
  }
}

void bind_errors(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def("_without_secrets", without_secrets, nb::arg("text"),
             "A text whose URLs show no query, user name or password.");
  module.def(
      "_did_you_mean",
      [](const std::string& name, const std::vector<std::string>& names) {
        return core::did_you_mean(core::nearest_names(name, names));
      },
      nb::arg("name"), nb::arg("names"),
      "The names nearest to one that is not there, as a question; an empty text where none is near.");
  module.def("_error_codes", error_codes, "Every error code's name and the built-in exception it arrives as.");
}

}  // namespace penstock::python
