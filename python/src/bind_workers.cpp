// Worker processes for Python: who starts them is a launcher of penstock._processes, and loaders take them by
// `workers=`.

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bindings.h"
#include "functions.h"
#include "gil.h"
#include "worker_serve.h"
#include "workers.h"

namespace penstock::python {

PyWorkers::PyWorkers(nb::object launcher, std::size_t most)
    : launcher_(std::move(launcher)),
      start_(launcher_.attr("start"), "workers"),
      reap_(launcher_.attr("reap"), "workers"),
      host_(std::make_shared<WorkerHost>(start_.lent(), reap_.lent(), most)) {}

PyWorkers::~PyWorkers() {
  const nb::error_scope on_its_way;  // an exception may be what lets go of the loader
  try {
    close();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("penstock.DataLoader");
  }
}

void PyWorkers::close() {
  host_->close();
  launcher_.attr("close")();
}

std::shared_ptr<WorkerHost> host_from(nb::handle workers) {
  return workers.is_none() ? nullptr : nb::cast<PyWorkers&>(workers).host();
}

void bind_workers(nb::module_& module) {
  nb::class_<PyWorkers>(module, "_Workers", "Worker processes that call the functions of a loader.")
      .def(nb::init<nb::object, std::size_t>(), nb::arg("launcher"), nb::arg("most"))
      .def("close", &PyWorkers::close, "Has them end, and waits for that, for a bounded time.")
      .def_prop_ro(
          "pids", [](const PyWorkers& self) { return self.host()->pids(); }, "Of those that were started.");
  nb::class_<PyHeldFunction>(module, "_HeldFunction", "A function that worker processes keep.")
      .def(nb::init<nb::handle>(), nb::arg("function"));
  module.def("_serve_calls", serve_calls, nb::arg("socket"),
             "What a worker process does until its parent closes the socket.");
}

}  // namespace penstock::python
