#pragma once

// Functions of the program that C++ calls from its worker threads. The lock is taken for the call alone.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample/user_call.h"
#include "interpreter/typed.h"
#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "penstock/value.h"

namespace penstock::python {

/// What a function of Python raised, as the cause of an Error. Freed in any thread.
class RaisedInPython final : public std::exception {
 public:
  /// Needs the GIL.
  explicit RaisedInPython(nb::object exception);
  /// "ValueError: no clip", which is the end of the Error's message.
  const char* what() const noexcept override { return text_.c_str(); }
  /// Needs the GIL.
  nb::object exception() const { return nb::borrow(exception_); }

 private:
  PyObject* exception_;
  std::shared_ptr<const void> kept_;
  std::string text_;
};

/// A function that C++ may call for as long as its keeper lives, which a Python object holds. So the garbage collector
/// sees the function, which may well lead back to the dataset or loader that C++ calls it for.
class HeldFunction {
 public:
  /// Needs the GIL. kDTypeMismatch for an object that cannot be called; `what` is "map()".
  HeldFunction(nb::handle function, const char* what);

  /// What the function gives for a sample or batch, or for samples; its exception is thrown as an Error. Any thread,
  /// without the GIL.
  Value operator()(const Value& argument) const;
  Value operator()(std::int64_t index) const;
  Value operator()(const std::vector<Value>& arguments) const;
  /// With a numpy.random.Generator that is made from the key.
  Value operator()(const Value& argument, const data::RandomKey& key) const;
  bool is_true(const Value& argument) const;
  /// Has the function fill `into` with the bytes at `offset`: it gets both, the memory as a memoryview that it may not
  /// keep. Any thread.
  void operator()(std::uint64_t offset, std::span<std::byte> into) const;

  /// By which others know it, and whether it is still there.
  const void* id() const noexcept { return cell_.get(); }
  std::weak_ptr<const void> watched() const noexcept { return cell_; }
  /// The function as bytes for another process, which `pickler` gives. Any thread, without the GIL. The program's
  /// exception where it does not pickle, or unless `runs_main` where the process would have to run the program's main
  /// module.
  std::string pickled(const HeldFunction& pickler, bool runs_main) const;
  /// The function of such bytes, which keeps itself. Any thread, without the GIL.
  static HeldFunction unpickled(std::string_view pickled);

  /// The file that the function gives for a path (contents.h). Any thread, without the GIL.
  Source opened(const std::string& path) const;

  /// What the Python object has to hold.
  nb::object keeper() const { return keeper_; }
  /// The same without the keeper, for C++ to hold.
  HeldFunction lent() const { return HeldFunction(cell_); }

 private:
  /// Through it C++ finds the function, without holding it.
  class Cell {
   public:
    void put(PyObject* function) noexcept {
      const nb::ft_lock_guard lock(mutex_);
      function_ = function;
    }
    /// Null when its keeper is gone.
    nb::object function() const {
      const nb::ft_lock_guard lock(mutex_);
      return nb::borrow(function_);
    }

   private:
    mutable nb::ft_mutex mutex_;
    PyObject* function_ = nullptr;
  };
  friend class FunctionKeeper;
  explicit HeldFunction(std::shared_ptr<Cell> cell) : cell_(std::move(cell)) {}
  template <class Call>
  auto call(Call call) const;

  std::shared_ptr<Cell> cell_;
  nb::object keeper_;
};

/// A function of samples or batches, as C++ has it: called here, or by the thread's runner (data::RunnerScope).
struct SampleFunction {
  HeldFunction function;
  bool seeded = false;
  bool tells = false;  ///< it gives whether what Python's function gives is true
  Value operator()(const Value& argument, const data::RandomKey& key) const;
};

/// A function that gives samples, likewise.
struct SampleMaker {
  HeldFunction function;
  Value operator()(std::int64_t index) const;
};

/// Makes calls of HeldFunctions under the lock, which each of them finds taken then. Any thread.
void calls_of_python(const std::function<void()>& calls);

/// Warns of `text` by a class of penstock.errors. Any thread; where the program makes errors of warnings, that is
/// thrown as an Error.
void warn_from_anywhere(const char* category, const std::string& text);

/// data::is_of_surroundings of what Python raised.
bool is_of_surroundings(nb::handle exception);
/// What to raise where so many samples in a row could not be had, the last one because of `exception`: data::outage, or
/// None where they are not too many.
Anything outage_of(nb::handle exception, std::size_t in_a_row);
/// Why a sample is set aside whose function raised `exception`, in the words of data::of_sample.
Typed<nb::str> why_set_aside(nb::handle exception, const Dataset& dataset, std::int64_t index);

/// What a Python function raised, where that is the cause of `error`; else null. It has its own type, and its text says
/// where it was raised.
nb::object raised_in_python(const Error& error);

}  // namespace penstock::python
