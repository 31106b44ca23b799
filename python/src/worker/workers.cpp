// Worker processes for Python: who starts them is a launcher of penstock._processes, and loaders take them by
// `workers=`.

#include "worker/workers.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bindings.h"
#include "content/functions.h"
#include "data/sample/runner_trial.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "worker/serve.h"

namespace penstock::python {

namespace {

std::unique_ptr<data::RunnerTrial> trial_of(const std::optional<std::string>& clock, std::size_t most,
                                            const HeldFunction& is_ready) {
  if (!clock) return nullptr;
  using Kind = data::RunnerTrial::Clock;
  const Kind kind = *clock == "batches" ? Kind::kBatches : Kind::kCallers;
  return std::make_unique<data::RunnerTrial>(most, kind, [f = is_ready.lent()] { return f.is_true(Value()); });
}

Typed<std::optional<nb::str>> because_of(const PyWorkers& self) {
  data::RunnerTrial* const trial = self.runner()->trial();
  return trial == nullptr ? nb::none() : nb::object(text_from(trial->because()));
}

bool calls_here(const PyWorkers& self) {
  data::RunnerTrial* const trial = self.runner()->trial();
  return trial != nullptr && trial->calls_here();
}

void note_here(const PyWorkers& self, double seconds, std::size_t samples) {
  if (data::RunnerTrial* const trial = self.runner()->trial()) trial->note(data::CallWay::kHere, seconds, samples);
}

Typed<std::optional<Tensor>> memory_of_answer(std::size_t bytes) {
  Buffer memory = answer_memory(bytes);
  if (!memory) return nb::none();
  return nb::cast(Tensor(std::move(memory), DType(DType::Code::kUInt8), Shape{static_cast<std::int64_t>(bytes)}));
}

}  // namespace

nb::dict figures_of(const WorkerRunner& runner) {
  const WorkerRunner::Figures figures = runner.figures();
  nb::dict out;
  out["worker_processes"] = figures.processes;
  out["worker_processes_started"] = figures.started;
  out["worker_calls"] = figures.calls;
  out["worker_function_seconds"] = figures.seconds;
  out["worker_bytes"] = runner.bytes();
  return out;
}

PyWorkers::PyWorkers(nb::object launcher, std::size_t most, const std::optional<std::string>& trial)
    : launcher_(std::move(launcher)),
      start_(launcher_.attr("start"), "workers"),
      reap_(launcher_.attr("reap"), "workers"),
      pickle_(launcher_.attr("pickled"), "workers"),
      is_ready_(launcher_.attr("is_ready"), "workers"),
      runner_(std::make_shared<WorkerRunner>(WorkerRunner::Launch{start_.lent(), reap_.lent(), pickle_.lent()}, most,
                                             trial_of(trial, most, is_ready_))) {}

PyWorkers::~PyWorkers() {
  const nb::error_scope on_its_way;  // an exception may be what lets go of the loader
  try {
    close();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("penstock.DataLoader");
  }
}

void PyWorkers::close() {
  runner_->close();
  launcher_.attr("close")();
}

std::shared_ptr<WorkerRunner> runner_from(nb::handle workers) {
  return workers.is_none() ? nullptr : nb::cast<PyWorkers&>(workers).runner();
}

void bind_workers(nb::module_& module) {
  nb::class_<PyWorkers>(module, "_Workers", "Worker processes that call the functions of a loader.")
      .def(nb::init<nb::object, std::size_t, const std::optional<std::string>&>(), nb::arg("launcher"), nb::arg("most"),
           nb::arg("trial").none() = nb::none())
      .def("close", &PyWorkers::close, "Has them end, and waits for that, for a bounded time.")
      .def_prop_ro(
          "pids", [](const PyWorkers& self) { return self.runner()->pids(); }, "Of those that were started.")
      .def_prop_ro("because", because_of, "Where functions are called in a trial, and why; None without one.")
      .def_prop_ro("calls_here", calls_here, "Whether a trial has functions called in threads now.")
      .def_prop_ro(
          "figures", [](const PyWorkers& self) { return figures_of(*self.runner()); }, "What they did, for stats().")
      .def("note_here", note_here, nb::arg("seconds"), nb::arg("samples"),
           "How long the functions of a batch took that were called here.");
  nb::class_<PyHeldFunction>(module, "_HeldFunction", "A function that worker processes keep.")
      .def(nb::init<nb::handle>(), nb::arg("function"));
  module.def("_note_part", note_part, nb::arg("part"),
             "At which sample of several, counted from 1, a call of a worker process is; 0: at none of them.");
  module.def("_answer_memory", memory_of_answer, nb::arg("bytes"),
             "In a call of a worker process: memory for a result that then is not copied; None where there is none.");
  module.def("_serve_calls", serve_calls, nb::arg("socket"),
             "What a worker process does until its parent closes the socket.");
}

}  // namespace penstock::python
