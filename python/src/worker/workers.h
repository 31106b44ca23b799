#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "content/functions.h"
#include "interpreter/nanobind.h"
#include "worker/runner.h"

namespace penstock::python {

/// A WorkerRunner as Python has it. Members need the GIL.
class PyWorkers {
 public:
  /// `trial`: "batches" or "callers" (RunnerTrial::Clock) where it is to be found out whether they are worth it.
  PyWorkers(nb::object launcher, std::size_t most, const std::optional<std::string>& trial);
  ~PyWorkers();
  PyWorkers(const PyWorkers&) = delete;
  PyWorkers& operator=(const PyWorkers&) = delete;

  const std::shared_ptr<WorkerRunner>& runner() const noexcept { return runner_; }
  /// Idempotent.
  void close();

 private:
  nb::object launcher_;
  HeldFunction start_;
  HeldFunction reap_;
  HeldFunction pickle_;
  HeldFunction is_ready_;
  std::shared_ptr<WorkerRunner> runner_;
};

/// A function that worker processes have for as long as this lives, for several feeds.
class PyHeldFunction {
 public:
  explicit PyHeldFunction(nb::handle function) : function_(function, "a feed") {}
  const HeldFunction& held() const noexcept { return function_; }

 private:
  HeldFunction function_;
};

/// What stats() says of worker processes.
nb::dict figures_of(const WorkerRunner& runner);
/// That of a _Workers; null of None.
std::shared_ptr<WorkerRunner> runner_from(nb::handle workers);

}  // namespace penstock::python
