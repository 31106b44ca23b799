#include "content/functions.h"

#include <cxxabi.h>

#include <optional>
#include <utility>

#include "archive/opening.h"
#include "bindings.h"
#include "content/contents.h"
#include "content/value.h"
#include "core/format.h"
#include "core/warning.h"
#include "data/sample/blame.h"
#include "data/sample/runner.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"

namespace penstock::python {

/// Keeps a function. The garbage collector looks through it, and may take the function away.
class FunctionKeeper {
 public:
  FunctionKeeper(nb::object function, std::shared_ptr<HeldFunction::Cell> cell)
      : function_(std::move(function)), cell_(std::move(cell)) {
    cell_->put(function_.ptr());
  }
  FunctionKeeper(FunctionKeeper&&) noexcept = default;
  FunctionKeeper& operator=(FunctionKeeper&&) = delete;
  ~FunctionKeeper() { let_go(); }

  nb::handle function() const noexcept { return function_; }
  /// C++ does not get the function any more.
  void hide() noexcept {
    if (cell_) cell_->put(nullptr);
  }
  void let_go() noexcept {
    hide();
    function_.reset();
  }

 private:
  nb::object function_;
  std::shared_ptr<HeldFunction::Cell> cell_;
};

namespace {

int traverse_keeper(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<FunctionKeeper>(self)->function().ptr());
  return 0;
}

/// The collector asks all that it takes for garbage to end before it clears any of it. Threads of C++, which it does
/// not see, must not call a function of which parts are cleared.
void finalize_keeper(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<FunctionKeeper>(self)->hide();
}

int clear_keeper(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<FunctionKeeper>(self)->let_go();
  return 0;
}

/// The code that an exception stands for: that of an error of ours, and kCancelled for what is no error (Ctrl-C).
ErrorCode code_of(nb::handle exception) {
  if (PyErr_GivenExceptionMatches(exception.ptr(), PyExc_Exception) == 0) return ErrorCode::kCancelled;
  if (PyErr_GivenExceptionMatches(exception.ptr(), PyExc_MemoryError) != 0) return ErrorCode::kOutOfMemory;
  const nb::object ours = nb::module_::import_("penstock.errors").attr("Error");
  if (PyObject_IsInstance(exception.ptr(), ours.ptr()) != 1) return ErrorCode::kUserCode;
  const std::string name = nb::str(nb::object(exception.attr("code"))).c_str();
  for (int code = 0; code <= static_cast<int>(ErrorCode::kCancelled); ++code) {
    if (error_code_info(static_cast<ErrorCode>(code)).name == name) return static_cast<ErrorCode>(code);
  }
  return ErrorCode::kUserCode;
}

std::string message_of(nb::handle exception) {
  try {
    const std::string type = nb::str(nb::object(exception.type().attr("__name__"))).c_str();
    const std::string text = name_from(nb::str(exception));
    return text.empty() ? type : core::format("{}: {}", type, text);
  } catch (const nb::python_error&) {
    return "an exception without a text";
  }
}

/// Whether the function has kept neither the generator nor its bit generator, so that another call may have them.
bool is_given_back(const nb::tuple& lent) {
  constexpr Py_ssize_t kOfTuple = 1;
  constexpr Py_ssize_t kOfGenerator = 1;
  return Py_REFCNT(nb::handle(lent[0]).ptr()) == kOfTuple &&
         Py_REFCNT(nb::handle(lent[1]).ptr()) == kOfTuple + kOfGenerator;
}

/// An attribute that is a number; none where there is no such attribute, or it is something else.
std::optional<int> number_of(nb::handle exception, const char* attribute) {
  int number = 0;
  const bool has = nb::try_cast(nb::getattr(exception, attribute, nb::none()), number);
  return has ? std::optional(number) : std::nullopt;
}

/// The numbers that the exception has; not its path, because it is told as it is where the sample is named.
ErrorContext numbers_of(nb::handle exception) {
  ErrorContext out;
  if (PyErr_GivenExceptionMatches(exception.ptr(), PyExc_OSError) != 0) {
    out.system_error = number_of(exception, "errno");
  }
  const nb::object ours = nb::module_::import_("penstock.errors").attr("Error");
  if (PyObject_IsInstance(exception.ptr(), ours.ptr()) == 1) out.http_status = number_of(exception, "http_status");
  return out;
}

Error error_of(nb::handle exception) {
  const RaisedInPython raised{nb::borrow(exception)};
  return Error(code_of(exception), raised.what(), numbers_of(exception)).caused_by(std::make_exception_ptr(raised));
}

[[noreturn]] void throw_raised(const nb::python_error& error) { throw error_of(error.value()); }

}  // namespace

RaisedInPython::RaisedInPython(nb::object exception)
    : exception_(exception.ptr()), kept_(keep_alive(exception)), text_(message_of(exception)) {}

HeldFunction::HeldFunction(nb::handle function, const char* what) : cell_(std::make_shared<Cell>()) {
  if (PyCallable_Check(function.ptr()) == 0) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("found an object of type {} where {} takes a function", object_type(function), what));
  }
  keeper_ = nb::cast(FunctionKeeper(nb::borrow(function), cell_));
}

namespace {

template <class Calls>
auto with_python(Calls calls) {
  const Running running;  // the interpreter's end waits for the calls
  if (!Running::may_call_python()) throw Error(ErrorCode::kCancelled, "Python is ending");
  const AcquiredGil acquired;
  // A call from a destructor comes where an exception may be on its way, which Python would lose at the next one.
  const nb::error_scope already_raised;
  try {
    return calls();
  } catch (const nb::python_error& error) {
    throw_raised(error);
  } catch (const abi::__forced_unwind&) {
    stop_thread();  // it took longer than the interpreter's end waits
  }
}

}  // namespace

void calls_of_python(const std::function<void()>& calls) { with_python(calls); }

template <class Call>
auto HeldFunction::call(Call call) const {
  return with_python([&] {
    const nb::object function = cell_->function();
    if (!function.is_valid()) throw Error(ErrorCode::kCancelled, "the function's dataset or loader is gone");
    return call(function);
  });
}

Value HeldFunction::operator()(const Value& argument) const {
  return call([&](const nb::object& function) { return from_python(function(to_python(argument))); });
}

Value HeldFunction::operator()(std::int64_t index) const {
  return call([&](const nb::object& function) { return from_python(function(index)); });
}

Value HeldFunction::operator()(const std::vector<Value>& arguments) const {
  return call([&](const nb::object& function) {
    return from_python(function(list_of(arguments, [](const Value& argument) { return to_python(argument); })));
  });
}

Value HeldFunction::operator()(const Value& argument, const data::RandomKey& key) const {
  return call([&](const nb::object& function) {
    const nb::module_ module = nb::module_::import_("penstock._batches.functions");
    const auto lent = nb::borrow<nb::tuple>(module.attr("lent_generator")(key.seed, key.epoch, key.index, key.stage));
    Value out = from_python(function(to_python(argument), nb::handle(lent[0])));
    if (is_given_back(lent)) module.attr("idle_generators").attr("append")(lent);
    return out;
  });
}

bool HeldFunction::is_true(const Value& argument) const {
  return call([&](const nb::object& function) {
    const nb::object answer = function(to_python(argument));
    const int truth = PyObject_IsTrue(answer.ptr());
    if (truth < 0) nb::raise_python_error();
    return truth == 1;
  });
}

void HeldFunction::operator()(std::uint64_t offset, std::span<std::byte> into) const {
  call([&](const nb::object& function) {
    const nb::object view = checked(PyMemoryView_FromMemory(reinterpret_cast<char*>(into.data()),
                                                            static_cast<Py_ssize_t>(into.size()), PyBUF_WRITE));
    const auto is_released = [&] { return nb::steal(PyObject_CallMethod(view.ptr(), "release", nullptr)).is_valid(); };
    try {
      function(offset, view);
    } catch (const nb::python_error&) {  // whose traceback keeps the view
      if (!is_released()) PyErr_Clear();
      throw;
    }
    if (!is_released()) nb::raise_python_error();
  });
}

std::string HeldFunction::pickled(const HeldFunction& pickler, bool runs_main) const {
  return pickler.call([&](const nb::object& dumps) {
    return call([&](const nb::object& function) {
      const nb::object bytes = dumps(function, runs_main);
      return std::string(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
    });
  });
}

HeldFunction HeldFunction::unpickled(std::string_view pickled) {
  HeldFunction out(nullptr);
  calls_of_python([&] {
    const nb::object function = nb::module_::import_("penstock._processes._worker")
                                    .attr("unpickled")(nb::bytes(pickled.data(), pickled.size()));
    out = HeldFunction(function, "map()");
  });
  return out;
}

namespace {

Value only(std::vector<data::Called> called) {
  if (called[0].error) throw *called[0].error;
  return std::move(called[0].value);
}

}  // namespace

Value SampleFunction::operator()(const Value& argument, const data::RandomKey& key) const {
  data::Runner* const runner = data::RunnerScope::current();
  if (runner == nullptr && tells) return Value::boolean(function.is_true(argument));
  if (runner == nullptr) return seeded ? function(argument, key) : function(argument);
  const data::UserFunction self = *this;
  const data::Runner::Step step{&self, key.stage};
  return only(runner->call({&step, 1}, {&argument, 1}, {&key.index, 1}, {.seed = key.seed, .epoch = key.epoch}, {}));
}

Value SampleMaker::operator()(std::int64_t index) const {
  data::Runner* const runner = data::RunnerScope::current();
  return runner == nullptr ? function(index) : only(runner->call(*this, {&index, 1}, {}));
}

Source HeldFunction::opened(const std::string& path) const {
  const auto open = [](const std::string& at) { return archive::source_at(at); };
  return call([&](const nb::object& function) { return source_given(function(path_text(path)), open, path); });
}

void warn_from_anywhere(const char* category, const std::string& text) {
  if (Running::is_ending()) return core::tell_warning({}, text);
  calls_of_python([&] { warn(nb::module_::import_("penstock.errors").attr(category), text); });
}

bool is_of_surroundings(nb::handle exception) {
  ErrorContext context = numbers_of(exception);
  const nb::object path = attribute_or(exception, "path");
  if (PyUnicode_Check(path.ptr()) != 0) context.path = path_from(path);
  return data::is_of_surroundings(Error(code_of(exception), "", std::move(context)));
}

Anything outage_of(nb::handle exception, std::size_t in_a_row) {
  if (in_a_row <= data::kMostInARow) return nb::none();
  return exception_of(data::outage(error_of(exception), in_a_row));
}

Typed<nb::str> why_set_aside(nb::handle exception, const Dataset& dataset, std::int64_t index) {
  return path_text(data::of_sample(error_of(exception), dataset, index).what());
}

nb::object raised_in_python(const Error& error) {
  if (!error.cause()) return {};
  try {
    std::rethrow_exception(error.cause());
  } catch (const RaisedInPython& raised) {
    return nb::module_::import_("penstock._batches.functions")
        .attr("located")(raised.exception(), path_text(error.message()), path_text(raised.what()),
                         error.path().empty() ? nb::none() : path_text(error.path()));
  } catch (...) {
    return {};  // of C++
  }
}

void bind_user_functions(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_keeper)},
                                {Py_tp_finalize, reinterpret_cast<void*>(finalize_keeper)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_keeper)},
                                {0, nullptr}};
  nb::class_<FunctionKeeper>(module, "_FunctionKeeper", "Keeps a function that C++ calls.", nb::type_slots(slots));
}

}  // namespace penstock::python
