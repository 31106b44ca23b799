#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "arrays/dlpack.h"
#include "bindings.h"
#include "content/functions.h"
#include "content/value.h"
#include "core/forks.h"
#include "core/format.h"
#include "core/task_pool.h"
#include "data/dataset/map.h"
#include "data/dataset/samples_name.h"
#include "data/dataset/with_runner.h"
#include "data/loader/batch_feed.h"
#include "data/sample/runner.h"
#include "data/sample/sample.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "loader/loader.h"
#include "penstock/error.h"
#include "worker/workers.h"

namespace penstock::python {
namespace {

using Clock = std::chrono::steady_clock;
using data::BatchFeed;

/// Adds the iterator's next item to the list; false at its end.
bool next_into(nb::handle iterator, nb::list into) {
  if (PyIter_Check(iterator.ptr()) == 0) {
    throw nb::type_error("found a sampler's iterator without __next__, expected an iterator");
  }
  PyObject* const item = PyIter_Next(iterator.ptr());
  if (item != nullptr) {
    into.append(nb::steal(item));
  } else if (PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  return item != nullptr;
}

bool are_counted(const std::vector<std::int64_t>& indices) {
  return std::none_of(indices.begin(), indices.end(), [](std::int64_t index) { return index < 0; });
}

/// The indices of a batch, or the index of one sample, where these are plain ints from 0 on.
std::optional<std::vector<std::int64_t>> indices_in(nb::handle drawn, bool alone) {
  std::optional<std::vector<std::int64_t>> out;
  if (!alone) {
    out = plain_integers_from(drawn);
  } else if (PyLong_CheckExact(drawn.ptr())) {
    int overflow = 0;
    out.emplace(1, PyLong_AsLongLongAndOverflow(drawn.ptr(), &overflow));
  }
  if (out && !are_counted(*out)) out.reset();
  return out;
}

/// A BatchFeed as Python has it: waits without the GIL, answers signals, and refuses to work in a forked child. Members
/// need the GIL, or where there is none the lock of the Python object.
class PyFeed {
  const std::shared_ptr<BatchFeed>& usable() const {
    if (feed_ == nullptr) throw Error(ErrorCode::kInvalidArgument, "the loader is closed; make a new one");
    core::require_own_process(forks_);
    return feed_;
  }

  /// act(feed) without the GIL: `act` waits for workers or for a lock, and so does the end of a feed that another
  /// thread has closed meanwhile; a worker may be waiting for the GIL.
  template <class Act>
  auto unlocked(Act act) const {
    std::shared_ptr<BatchFeed> held = usable();
    const ReleasedGil released;
    const std::shared_ptr<BatchFeed> feed = std::move(held);
    return act(*feed);
  }

 public:
  /// `keeper` and `workers` are held for as long as this lives.
  PyFeed(Dataset dataset, const LoaderOptions& options, nb::object keeper, nb::object workers)
      : keeper_(std::move(keeper)),
        workers_(std::move(workers)),
        feed_(std::make_shared<BatchFeed>(std::move(dataset), options)),
        timeout_(options.timeout) {}
  ~PyFeed() { close(); }
  PyFeed(const PyFeed&) = delete;
  PyFeed& operator=(const PyFeed&) = delete;

  std::size_t window() const { return usable()->window(); }
  void push(nb::handle indices) {
    auto numbers = integers_from(indices);  // runs the caller's code, which may close this
    const std::shared_ptr<BatchFeed> held = usable();
    held->push(std::move(numbers));
    ++pushed_;
  }
  std::uint64_t pushed() const noexcept { return pushed_; }
  bool ready() const { return kept_.holds() || usable()->ready(); }
  nb::handle workers() const noexcept { return workers_; }
  /// Also behind `close`.
  LoaderStats stats() const {
    if (!last_) return usable()->stats();
    LoaderStats out = *last_;
    out.processors = core::usable_cpus();
    return out;
  }
  const std::vector<std::int64_t>& indices() const noexcept { return indices_; }
  std::vector<SetAside> set_aside() const {
    return unlocked([](BatchFeed& feed) { return feed.policy().listed(); });
  }
  void know(const std::vector<SetAside>& samples) const {
    unlocked([&](BatchFeed& feed) { feed.policy().know(samples); });
  }

  /// Adds the next batch to `arrived`; false where none came in time.
  bool next(nb::list& arrived) {
    std::optional<Batch> batch = kept_.holds() ? kept_.take() : waited_for();
    if (!batch) return false;
    indices_ = batch->indices;
    kept_.hand_over(*std::move(batch), [&](const Batch& made) { arrived.append(to_python(made.value)); });
    return true;
  }

  /// What became of a call of `step`.
  enum class Step { kByParts, kMade, kEnd };

  /// Makes the batch of what the iterator gives next, which goes to `pulled` unless something is there, and adds it to
  /// `arrived`; `alone`: it is the index of one sample. Where that is not done at once, or fails, whoever takes what
  /// was pulled by `push` and `next` finds out why. No handler of a signal runs in here.
  Step step(nb::handle iterator, nb::list pulled, nb::list arrived, bool alone) {
    if (kept_.holds()) return Step::kByParts;
    if (pulled.size() == 0 && !next_into(iterator, pulled)) return Step::kEnd;
    std::optional<std::vector<std::int64_t>> indices = indices_in(pulled[0], alone);
    if (!indices) return Step::kByParts;
    try {
      const std::optional<Batch> batch = unlocked([&](BatchFeed& feed) { return feed.at_once(*std::move(indices)); });
      if (!batch) return Step::kByParts;
      arrived.append(to_python(batch->value));
    } catch (const Error&) {
      return Step::kByParts;
    }
    return Step::kMade;
  }

  void close() noexcept {
    kept_.drop();
    if (feed_ == nullptr) return;
    if (core::forks() != forks_) {
      // The threads stayed in the parent: waiting for them would take for ever.
      static_cast<void>(new (std::nothrow) std::shared_ptr<BatchFeed>(std::move(feed_)));
      return;
    }
    std::shared_ptr<BatchFeed> last = std::move(feed_);
    last_ = last->counted();
    {
      const ReleasedGil released;
      last->cancel();
      last.reset();
    }
    keeper_.reset();
  }

 private:
  std::optional<Batch> waited_for() const {
    const Clock::time_point start = Clock::now();
    for (;;) {
      std::optional<Batch> batch =
          unlocked([](BatchFeed& feed) { return feed.next_for(std::chrono::duration<double>(kSignalPeriod).count()); });
      if (batch) return batch;
      check_signals();
      if (timeout_ > 0 && std::chrono::duration<double>(Clock::now() - start).count() >= timeout_) return {};
    }
  }

  nb::object keeper_;
  nb::object workers_;
  std::uint64_t pushed_ = 0;           ///< batches
  std::vector<std::int64_t> indices_;  ///< of the last batch that was given
  KeptBatch kept_;
  std::shared_ptr<BatchFeed> feed_;
  std::optional<LoaderStats> last_;  ///< once it is closed
  double timeout_;
  std::uint64_t forks_ = core::forks();
};

/// The dataset whose batches become what `finish` makes in a worker process of (indices, batch, seed); in a trial also
/// (None, batch), for whoever takes it to finish.
Dataset finished_elsewhere(const Dataset& dataset, std::shared_ptr<WorkerRunner> runner, const HeldFunction& finish) {
  const SampleFunction function{finish.lent(), false};
  auto call = [function, of = runner.get()](const Value& batch, const data::RandomKey& key) {
    const HeldFunction* const only = &function.function;
    if (data::RunnerScope::current() == nullptr || !of->gets_there({&only, 1})) return Value::tuple({Value(), batch});
    const auto begin = Clock::now();
    const std::vector<Value> indices(key.batch.begin(), key.batch.end());
    const Value given = Value::tuple({Value::list(indices), batch, Value(key.seed)});
    const data::UserFunction self = function;
    const data::Runner::Step step{&self, key.stage};
    data::Called called = std::move(of->call_there({&step, 1}, {&given, 1}, {&key.index, 1}, {key.seed, key.epoch})[0]);
    if (called.error && called.at_sample && *called.at_sample < indices.size()) {
      throw data::SampleError(*called.at_sample, *called.error);
    }
    if (called.error) throw *called.error;
    if (data::RunnerTrial* const trial = of->trial()) {
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      trial->note(data::CallWay::kElsewhere, seconds, indices.size());
    }
    return std::move(called.value);
  };
  return data::with_runner(data::mapped(dataset, std::move(call), data::Of::kBatches, false), std::move(runner));
}

void construct(PyFeed* self, const Dataset& dataset, const Collate& collate, std::size_t num_workers,
               std::size_t prefetch_factor, std::optional<std::uint64_t> memory_budget, double timeout,
               nb::handle device, std::uint64_t seed, nb::handle on_error, nb::handle workers, nb::handle finish) {
  LoaderOptions options{.num_workers = num_workers, .prefetch_factor = prefetch_factor, .timeout = timeout};
  options.collate = collate;
  options.device = device_from(device);
  options.seed = seed;
  options.on_error = on_error_from(on_error);
  if (memory_budget) options.memory_budget = *memory_budget;
  std::shared_ptr<WorkerRunner> runner = runner_from(workers);
  if (runner == nullptr) {
    new (self) PyFeed(dataset, options, nb::object(), nb::none());
    return;
  }
  const HeldFunction& held = nb::cast<PyHeldFunction&>(finish).held();
  new (self)
      PyFeed(finished_elsewhere(dataset, std::move(runner), held), options, nb::borrow(finish), nb::borrow(workers));
}

std::vector<SetAside> samples_from(const nb::list& samples) {
  std::vector<SetAside> out;
  for (const nb::handle sample : samples) {
    out.push_back({.index = nb::cast<std::int64_t>(sample[0]),
                   .what = name_from(nb::object(sample[1])),
                   .why = name_from(nb::object(sample[2]))});
  }
  return out;
}

/// What a function of the program raised is the cause of an error of ours here: penstock.torch tells errors of batches
/// from what a signal's handler raises by their type.
bool next_of(PyFeed& feed, nb::list arrived) {
  try {
    return feed.next(arrived);
  } catch (const Error& error) {
    if (!error.cause()) throw;
    const nb::object exception = exception_of(error);
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
    nb::raise_python_error();
  }
}

/// A copy of a list of indices from 0 on, which are Python's own ints; None for anything else.
Typed<std::optional<ListOf<int>>> plain_indices(nb::handle given) {
  if (!PyList_CheckExact(given.ptr())) return nb::none();
  nb::object copy = checked(PyList_GetSlice(given.ptr(), 0, PY_SSIZE_T_MAX));
  return indices_in(copy, false) ? copy : nb::none();
}

/// What torch's `from_capsule` makes of the tensor; null, without an error, where more is to be asked about it.
nb::object plain_to_torch(nb::handle value, nb::handle from_capsule) {
  if (!value.type().is(nb::type<Tensor>())) return {};
  const Tensor& tensor = *nb::inst_ptr<Tensor>(value);
  if (tensor.read_only() || tensor.requires_grad() || tensor.device().type != DeviceType::kCpu) return {};
  try {
    return from_capsule(to_dlpack(tensor, nb::none(), nb::none(), nb::none(), nb::none()));
  } catch (const nb::builtin_exception&) {  // a BufferError
    return {};
  }
}

/// The samples with torch's tensors over the memory of ours, where each is one tensor or a tuple of some; else None.
Typed<std::optional<nb::list>> samples_to_torch(nb::list samples, nb::handle from_capsule) {
  nb::list out;
  for (const nb::handle sample : samples) {
    nb::object made = plain_to_torch(sample, from_capsule);
    if (!made.is_valid() && PyTuple_CheckExact(sample.ptr())) {
      const auto size = PyTuple_GET_SIZE(sample.ptr());
      made = checked(PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size; ++i) {
        nb::object part = plain_to_torch(PyTuple_GET_ITEM(sample.ptr(), i), from_capsule);
        if (!part.is_valid()) return nb::none();
        PyTuple_SET_ITEM(made.ptr(), i, part.release().ptr());
      }
    }
    if (!made.is_valid()) return nb::none();
    out.append(std::move(made));
  }
  return out;
}

}  // namespace

void bind_feed(nb::module_& module) {
  module.def(
      "_dataset_name", [](const Dataset& dataset) { return path_text(data::samples_name(dataset)); },
      nb::arg("dataset"), "By what positions tell a dataset from others of equal size.");
  module.def("_plain_indices", plain_indices, nb::arg("indices").none(),
             "A copy of a list of plain ints from 0 on; None for anything else.");
  module.def("_samples_to_torch", samples_to_torch, nb::arg("samples"), nb::arg("from_capsule"),
             "The samples with torch's tensors, where each is a tensor on the host or a tuple of some; else None.");
  module.def("_next_into", next_into, nb::arg("iterator"), nb::arg("into"),
             "Adds the next item to a list, before Python runs a signal's handler; False at the end.");
  module.def(
      "_none_left",
      [](const nb::list& samples) -> Anything { return exception_of(data::none_left(samples_from(samples))); },
      nb::arg("samples"));
  nb::class_<PyFeed>(module, "_Feed", "Prepares batches whose indices are pushed one by one; see penstock.torch.")
      .def("__init__", construct, nb::arg("dataset"), nb::arg("collate"), nb::arg("num_workers"),
           nb::arg("prefetch_factor"), nb::arg("memory_budget").none(), nb::arg("timeout"), nb::arg("device"),
           nb::arg("seed"), nb::arg("on_error"), nb::arg("workers") = nb::none(), nb::arg("finish") = nb::none())
      .def_prop_ro("window", &PyFeed::window, nb::lock_self(), "Batches that may be pushed and not taken.")
      .def_prop_ro("ready", &PyFeed::ready, nb::lock_self(), "Whether `next` would not wait.")
      .def_prop_ro("indices", &PyFeed::indices, nb::lock_self(),
                   "Of the batch that `next` gave last: what was read; empty where it was left out.")
      .def_prop_ro(
          "set_aside", [](const PyFeed& feed) { return listed(feed.set_aside()); }, nb::lock_self(),
          "What `on_error` set aside.")
      .def(
          "know", [](const PyFeed& feed, const nb::list& samples) { feed.know(samples_from(samples)); },
          nb::arg("samples"), nb::lock_self(), "Sets samples aside, as another feed did.")
      .def("push", &PyFeed::push, nb::arg("indices"), nb::lock_self())
      .def("next", next_of, nb::arg("arrived"), nb::lock_self(),
           "Adds the batch of the oldest push to a list, before Python runs a signal's handler; False where none "
           "came in time. An error belongs to one batch.")
      .def(
          "step",
          [](PyFeed& feed, nb::handle iterator, nb::list pulled, nb::list arrived, bool alone) {
            return static_cast<int>(feed.step(iterator, std::move(pulled), std::move(arrived), alone));
          },
          nb::arg("iterator"), nb::arg("pulled"), nb::arg("arrived"), nb::arg("alone"), nb::lock_self(),
          "1: draws from the iterator into `pulled`, and adds the batch of it to `arrived`. 0: it is to be pushed. 2: "
          "the iterator is at its end.")
      .def_prop_ro("pushed", &PyFeed::pushed, nb::lock_self(), "How many batches were pushed.")
      .def(
          "stats", [](const PyFeed& feed) { return figures_of(feed.stats(), feed.workers()); }, nb::lock_self())
      .def("close", &PyFeed::close, nb::lock_self(), "Stops the workers and drops what they prepared.");
}

}  // namespace penstock::python
