// penstock.DataLoader for Python: its arguments as LoaderOptions and back (for pickles and copies), its iterators,
// states and figures. How a batch is waited for is in loader.cpp.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <utility>
#include <vector>

#include "bindings.h"
#include "call/arguments.h"
#include "call/traffic.h"
#include "content/functions.h"
#include "content/value.h"
#include "core/format.h"
#include "data/loader/position_fields.h"
#include "data/sample/runner.h"
#include "data/sampler/rank_sources.h"
#include "interpreter/convert.h"
#include "loader/loader.h"
#include "penstock/error.h"
#include "worker/workers.h"

namespace penstock::python {
namespace {

/// One iteration: what `iter(loader)` gives. Keeps the loader alive; when it goes, preparation stops.
class LoaderIterator {
 public:
  explicit LoaderIterator(nb::object loader)
      : loader_(std::move(loader)), iteration_(nb::cast<PyLoader&>(loader_).begin()) {}
  LoaderIterator(LoaderIterator&& other) noexcept = default;
  LoaderIterator& operator=(LoaderIterator&&) = delete;
  ~LoaderIterator() { abandon(); }

  Anything next() {
    // Another thread may find the end, and let go of the loader, while this one waits without the GIL.
    const nb::object held = loader_;
    if (!held.is_valid()) throw nb::stop_iteration();
    nb::object batch = [&] {
      const nb::ft_object_guard alone(held);
      return nb::cast<PyLoader&>(held).next(iteration_);
    }();
    if (batch.is_valid()) return batch;
    loader_.reset();
    throw nb::stop_iteration();
  }

  void abandon() noexcept {
    const nb::object held = std::move(loader_);
    if (!held.is_valid()) return;
    const nb::ft_object_guard alone(held);
    nb::inst_ptr<PyLoader>(held)->abandon(iteration_);
  }
  nb::handle loader() const noexcept { return loader_; }

 private:
  nb::object loader_;
  std::uint64_t iteration_;
};

/// What DataLoader was given, by name; penstock._api.loader says what that is.
class Arguments {
 public:
  explicit Arguments(nb::dict given) : given_(std::move(given)) {}
  nb::handle operator[](const char* name) const { return nb::handle(nb::object(given_[name])); }
  const nb::dict& all() const noexcept { return given_; }

 private:
  nb::dict given_;
};

Typed<std::variant<int, nb::str>> workers_of(const LoaderOptions& options) {
  const std::int64_t workers = options.num_workers;
  return workers == LoaderOptions::kAutoWorkers ? nb::object(nb::str("auto")) : nb::object(nb::int_(workers));
}

}  // namespace

Integer workers_from(nb::handle given) {
  if (PyUnicode_Check(given.ptr()) && nb::cast<std::string>(given) == "auto") return LoaderOptions::kAutoWorkers;
  if (PyIndex_Check(given.ptr()) != 0) {
    return not_negative(integer_argument(given, "num_workers"), "num_workers");
  }
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("found num_workers={}, expected a number of threads or \"auto\"", shown(given)));
}

OnError on_error_from(nb::handle given) {
  return choice_argument<OnError>(
      given, "on_error",
      {{"raise", OnError::kRaise}, {"skip", OnError::kSkip}, {"replace", OnError::kReplace}, {"mask", OnError::kMask}});
}

ListOf<TupleOf<int, nb::str, nb::str>> listed(const std::vector<SetAside>& samples) {
  nb::list out;
  for (const SetAside& sample : samples) {
    out.append(nb::make_tuple(sample.index, path_text(sample.what), path_text(sample.why)));
  }
  return out;
}

Remainder remainder_from(nb::handle given) {
  return choice_argument<Remainder>(
      given, "remainder", {{"pad", Remainder::kPad}, {"drop", Remainder::kDrop}, {"exact", Remainder::kExact}});
}

std::optional<Ranks> ranks_from(nb::handle given) {
  if (given.is_none()) return {};
  using Local = std::optional<std::int64_t>;
  return Ranks{.rank = nb::cast<std::int64_t>(given.attr("rank")),
               .size = nb::cast<std::int64_t>(given.attr("size")),
               .local_rank = nb::cast<Local>(given.attr("local_rank")),
               .local_size = nb::cast<Local>(given.attr("local_size")),
               .source = nb::cast<std::string>(given.attr("source"))};
}

namespace {

nb::module_ ranks_module() { return nb::module_::import_("penstock._batches.ranks"); }

nb::object ranks_of(const PyLoader& loader) {
  const std::optional<Ranks>& ranks = loader.options().ranks;
  if (!ranks) return nb::none();
  return ranks_module().attr("made")(ranks->rank, ranks->size, ranks->local_rank, ranks->local_size, ranks->source);
}

/// The rule of collate_fn, whose keeper the loader holds. `runner`: who calls it, unless null.
Collate collate_from(const HeldFunction& function, std::shared_ptr<WorkerRunner> runner) {
  return collate::function([f = function.lent(), runner = std::move(runner)](const std::vector<Value>& samples) {
    if (runner == nullptr) return f(samples);
    const data::RunnerScope scope(runner.get());  // which follows a trial
    return data::RunnerScope::current() == nullptr ? f(samples) : runner->call(f, samples);
  });
}

/// The worker processes of a loader that asks for them, or None.
nb::object workers_for(const Arguments& arguments) {
  return nb::module_::import_("penstock._processes")
      .attr("workers_for")(arguments["workers"], arguments["num_workers"], arguments["multiprocessing_context"]);
}

LoaderOptions options_from(const Arguments& arguments, nb::handle ranks, const std::shared_ptr<Raised>& raised) {
  LoaderOptions options;
  options.ranks = ranks_from(ranks);
  options.remainder = remainder_from(arguments["remainder"]);
  options.batch_size = integer_argument(arguments["batch_size"], "batch_size");
  options.shuffle = flag_argument(arguments["shuffle"], "shuffle");
  options.num_workers = workers_from(arguments["num_workers"]);
  options.drop_last = flag_argument(arguments["drop_last"], "drop_last");
  options.prefetch_factor =
      not_negative(integer_argument(arguments["prefetch_factor"], "prefetch_factor"), "prefetch_factor");
  options.seed = count_argument(arguments["seed"], "seed");
  options.timeout = number_argument(arguments["timeout"], "timeout");
  options.device = device_from(arguments["device"]);
  options.on_error = on_error_from(arguments["on_error"]);
  if (!arguments["trace"].is_none()) {
    options.trace = path_from(arguments["trace"]);
    if (options.trace.empty()) throw Error(ErrorCode::kInvalidArgument, "found an empty trace, expected a file's path");
  }
  if (!arguments["memory_budget"].is_none()) {
    options.memory_budget = count_argument(arguments["memory_budget"], "memory_budget");
  }
  if (nb::isinstance<Collate>(arguments["collate"])) {
    options.collate = nb::cast<Collate>(arguments["collate"]);
  } else if (!arguments["collate"].is_none()) {
    throw Error(ErrorCode::kDTypeMismatch, core::format("found a collate of type {}, expected stack(), "
                                                        "pad(), pad_to(), ragged() or samples()",
                                                        object_type(arguments["collate"])));
  }
  if (!arguments["sampler"].is_none()) options.sampler = sampler_from(arguments["sampler"], raised);
  if (!arguments["batch_sampler"].is_none()) {
    options.batch_sampler = batch_sampler_from(arguments["batch_sampler"], raised);
  }
  return options;
}

nb::object object_of(const std::string& text) { return text_from(text); }
nb::object object_of(std::integral auto number) { return nb::cast(number); }

nb::dict state_dict(PyLoader& loader) {
  const LoaderPosition position = loader.position();
  nb::dict out;
  data::for_each_field(position, [&](const char* name, const auto& value, bool) { out[name] = object_of(value); });
  if (!is_stream(loader.dataset())) nb::del(out["read"]);
  return out;
}

/// Asks the other ranks, where there is a way, whether they were told the same.
void compare_ranks(PyLoader& loader, nb::handle ranks, const Arguments& arguments) {
  nb::dict told;
  if (!ranks.is_none()) {
    const nb::dict state = state_dict(loader);
    told["the number of samples"] = state["samples"];
    told["the seed"] = state["seed"];
    told["the order"] = state["order"];
    told["the batch size"] = state["batch_size"];
    told["the number of batches"] = state["batches"];
    told["the remainder"] = arguments["remainder"];
  }
  ranks_module().attr("compare")(ranks, arguments["gather"], told,
                                 is_stream(loader.dataset()) ? nb::none() : loader.dataset());
}

void make_loader(PyLoader* self, nb::dict given_by_name) {
  const Arguments arguments(std::move(given_by_name));
  const nb::handle given = arguments["dataset"];
  const nb::object held = is_stream(given) ? nb::borrow(given) : counted_dataset(given);
  const nb::object dataset = typed(held, arguments["dtype"], arguments["strict"]);
  const nb::object ranks = ranks_module().attr("resolved")(arguments["ranks"]);
  const auto raised = std::make_shared<Raised>();
  std::optional<HeldFunction> function;
  if (!arguments["collate_fn"].is_none()) function.emplace(arguments["collate_fn"], "collate_fn");
  if (function && !arguments["collate"].is_none()) {
    throw Error(ErrorCode::kInvalidArgument, "found collate and collate_fn, expected one of them");
  }
  const nb::object workers = workers_for(arguments);
  const std::shared_ptr<WorkerRunner> runner = runner_from(workers);
  // Samplers and functions may be Python objects that the options borrow.
  nb::dict parts = nb::borrow<nb::dict>(nb::steal(PyDict_Copy(arguments.all().ptr())));
  parts["dataset"] = dataset;
  parts["collate_fn keeper"] = function ? function->keeper() : nb::none();
  parts["worker processes"] = workers;
  try {
    LoaderOptions options = options_from(arguments, ranks, raised);
    if (function) options.collate = collate_from(*function, runner);
    new (self) PyLoader(dataset, std::move(options), std::move(parts), raised, runner);
  } catch (const Error&) {
    raised->rethrow();
    throw;
  }
  try {
    compare_ranks(*self, ranks, arguments);
  } catch (...) {
    self->~PyLoader();
    throw;
  }
}

/// The arguments that make the same loader. A trace is the loader's own: two would write over each other's file.
/// kInvalidArgument where it is closed.
nb::dict arguments_of(PyLoader& loader) {
  loader.epoch();
  nb::dict out = nb::borrow<nb::dict>(nb::steal(PyDict_Copy(loader.parts().ptr())));
  for (const char* own : {"collate_fn keeper", "worker processes", "trace", "dtype", "strict"}) {
    if (out.contains(own)) nb::del(out[own]);
  }
  out["device"] = loader.options().device;
  out["ranks"] = ranks_of(loader);
  out["gather"] = false;
  return out;
}

// --- state and figures ---

template <class T>
T field(const nb::dict& state, const char* name) {
  T value{};
  if (state.contains(name) && nb::try_cast<T>(nb::object(state[name]), value)) return value;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("found {} in the state, expected {} under '{}' as state_dict() writes it",
                           state.contains(name) ? shown(nb::object(state[name])) : std::string("nothing"),
                           std::is_integral_v<T> ? "a whole number" : "text", name));
}

void load_state_dict(PyLoader& loader, nb::handle state) {
  if (!PyDict_Check(state.ptr())) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("found a state of type {}, expected the dict of state_dict()", object_type(state)));
  }
  const auto dict = nb::borrow<nb::dict>(state);
  LoaderPosition position;
  data::for_each_field(position, [&]<class T>(const char* name, T& value, bool is_required) {
    if (is_required || dict.contains(name)) value = field<T>(dict, name);
  });
  data::require_whole(position, dict.contains("read"));
  loader.seek(position);
}

/// As `list(loader)` needs it: it goes on where TypeError says that there is no length.
std::int64_t length_of(PyLoader& loader) {
  if (!is_stream(loader.dataset())) return loader.size();
  throw nb::type_error("the loader reads a stream, which has no length; count the batches as they come");
}

/// What the environment says, beside what `source` knows: rank, size, local rank, local size and who says so.
TupleOf<int, int, std::optional<int>, std::optional<int>, nb::str> ranks_known(nb::handle known,
                                                                               const std::string& source) {
  std::optional<Ranks> first;
  if (!known.is_none()) {
    first = Ranks{.rank = nb::cast<std::int64_t>(known[0]), .size = nb::cast<std::int64_t>(known[1]), .source = source};
  }
  const Ranks found = data::reconciled(std::move(first));
  return nb::make_tuple(found.rank, found.size, found.local_rank, found.local_size, found.source);
}

ListOf<TupleOf<int, nb::str, nb::str>> set_aside_of(PyLoader& loader) { return listed(loader.set_aside()); }

// --- garbage collection: a Python sampler may refer to its loader ---

int traverse_loader(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<PyLoader>(self)->parts().ptr());
  Py_VISIT(nb::inst_ptr<PyLoader>(self)->dataset().ptr());
  return 0;
}

int clear_loader(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyLoader>(self)->forget();
  return 0;
}

int traverse_iterator(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(nb::inst_ptr<LoaderIterator>(self)->loader().ptr());
  return 0;
}

int clear_iterator(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<LoaderIterator>(self)->abandon();
  return 0;
}

void bind_iterator(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_iterator)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_iterator)},
                                {0, nullptr}};
  nb::class_<LoaderIterator>(module, "_LoaderIterator", "One iteration over a DataLoader.", nb::type_slots(slots))
      .def("__iter__", itself<LoaderIterator>)
      .def("__next__", &LoaderIterator::next, nb::lock_self());
}

}  // namespace

Typed<nb::typed<nb::dict, nb::str, nb::any>> figures_of(const LoaderStats& figures, nb::handle workers) {
  nb::dict out;
  out["batches"] = figures.batches;
  out["samples"] = figures.samples;
  out["payload_bytes"] = figures.payload_bytes;
  out["read_bytes"] = figures.read_bytes;
  out["files_opened"] = figures.files_opened;
  out["files_parsed"] = figures.files_parsed;
  out["open_seconds"] = figures.open_seconds;
  out["read_seconds"] = figures.read_seconds;
  out["decode_seconds"] = figures.decode_seconds;
  out["function_seconds"] = figures.function_seconds;
  out["collate_seconds"] = figures.collate_seconds;
  out["copy_seconds"] = figures.copy_seconds;
  out["send_seconds"] = figures.send_seconds;
  out["compute_seconds"] = figures.compute_seconds;
  out["stall_seconds"] = figures.stall_seconds;
  out["budget_seconds"] = figures.budget_seconds;
  out["wait_seconds"] = figures.wait_seconds;
  out["caller_seconds"] = figures.caller_seconds;
  out["caller_stall_seconds"] = figures.caller_stall_seconds;
  out["worker_capacity"] = figures.worker_capacity;
  out["process_seconds"] = figures.process_seconds;
  out["first_batch_seconds"] = figures.first_batch_seconds;
  out["buffers_allocated"] = figures.buffers_allocated;
  add_traffic(out, figures.remote);
  out["workers"] = figures.workers;
  out["processors"] = figures.processors;
  out["workers_because"] = figures.workers_because();
  if (const std::shared_ptr<WorkerRunner> runner = runner_from(workers)) out.update(figures_of(*runner));
  out["bottleneck"] = std::string(figures.bottleneck());
  out["limit"] = figures.limit();
  return nb::module_::import_("penstock._batches.stats").attr("LoaderStats")(out, figures.to_string());
}

void bind_loader(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_loader)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_loader)},
                                {0, nullptr}};
  bind_iterator(module);
  bind_filter();
  nb::class_<PyLoader>(module, "DataLoader", nb::type_slots(slots), nb::is_weak_referenceable())
      .def("__init__", make_loader, nb::arg("arguments"))
      .def("__len__", length_of, nb::lock_self(),
           "Batches in an epoch; TypeError for a stream, whose length is not known.")
      .def(
          "__iter__", [](nb::object self) { return LoaderIterator(std::move(self)); }, nb::lock_self(),
          "Begins the current epoch, or goes on where load_state_dict left it. Ends an iteration begun before.")
      .def(
          "set_epoch", [](PyLoader& loader, nb::handle epoch) { loader.set_epoch(count_argument(epoch, "epoch")); },
          nb::arg("epoch").none(), nb::lock_self())
      .def_prop_ro("epoch", &PyLoader::epoch, nb::lock_self(), "The epoch that the next batch belongs to.")
      .def("state_dict", state_dict, nb::lock_self())
      .def("load_state_dict", load_state_dict, nb::arg("state").none(), nb::lock_self())
      .def_prop_ro("set_aside", set_aside_of, nb::lock_self(),
                   "Samples that `on_error` left out so far: index, what it is (its file), and why.")
      .def(
          "stats",
          [](PyLoader& loader) {
            const LoaderStats stats = loader.stats();  // kInvalidArgument where it is closed
            return figures_of(stats, nb::object(loader.parts()["worker processes"]));
          },
          nb::lock_self())
      .def(
          "explain",
          [](PyLoader& loader) -> Typed<nb::str> {
            const std::size_t threads = loader.stats().workers;  // kInvalidArgument where it is closed
            const nb::object& parts = loader.parts();
            return nb::module_::import_("penstock._processes")
                .attr("explained")(parts["workers"], parts["worker processes"], threads);
          },
          nb::lock_self())
      .def("write_trace", &PyLoader::write_trace, nb::lock_self())
      .def("close", &PyLoader::close, nb::lock_self())
      .def("__enter__", itself<PyLoader>)
      .def(
          "__exit__", [](PyLoader& self, const nb::args&) { self.close(); }, nb::lock_self())
      .def("_arguments", arguments_of, nb::lock_self())
      .def("__reduce__",
           [](nb::handle self) {
             return nb::module_::import_("penstock._objects.pickling").attr("reduced_loader")(self);
           })
      .def_prop_ro("dataset", [](const PyLoader& self) { return self.dataset(); })
      .def_prop_ro("batch_size", [](const PyLoader& self) { return self.options().batch_size; })
      .def_prop_ro(
          "num_workers", [](const PyLoader& self) { return workers_of(self.options()); },
          "As given; stats()[\"workers\"] is the number at work.")
      .def_prop_ro("seed", [](const PyLoader& self) { return self.options().seed; })
      .def_prop_ro("ranks", ranks_of, "Among which ranks the order is dealt out, and who says so.");
  module.def("_ranks", ranks_known, nb::arg("known").none(), nb::arg("source"));
}

}  // namespace penstock::python
