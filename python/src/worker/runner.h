#pragma once

// Worker processes that call the functions of a loader. Each thread of the loader that has something to call takes one
// of them for as long as that lasts, so that order, positions, limits and errors are those of the threads.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "content/functions.h"
#include "data/sample/runner.h"
#include "data/sample/runner_trial.h"
#include "worker/memory.h"
#include "worker/process.h"

namespace penstock::python {

class WorkerRunner final : public data::Runner {
 public:
  /// What Python does for it.
  struct Launch {
    HeldFunction start;   ///< gives [socket, pid] of a new process
    HeldFunction reap;    ///< how the process of a number ended, as text
    HeldFunction pickle;  ///< a function as bytes for a process (HeldFunction::pickled)
  };

  /// Up to `most` processes are started, each when a thread has no other. `trial`: it is asked where that says so.
  WorkerRunner(Launch launch, std::size_t most, std::unique_ptr<data::RunnerTrial> trial);
  ~WorkerRunner() override;

  bool takes(const data::UserFunction& function) const noexcept override;
  bool takes(const data::IndexFunction& function) const noexcept override;
  std::vector<data::Called> call(std::span<const Step> run, std::span<const Value> samples,
                                 std::span<const std::int64_t> indices, const data::EpochSeed& seed,
                                 const data::ExpectedSlots& slots) override;
  std::vector<data::Called> call(const data::IndexFunction& get, std::span<const std::int64_t> indices,
                                 const data::ExpectedSlots& slots) override;
  Buffer batch_memory(std::size_t bytes) override;
  /// The run, of functions that get there and may not be called here.
  std::vector<data::Called> call_there(std::span<const Step> run, std::span<const Value> samples,
                                       std::span<const std::int64_t> indices, const data::EpochSeed& seed,
                                       const data::ExpectedSlots& slots = {});
  /// What a function of collation gives.
  Value call(const HeldFunction& function, const std::vector<Value>& samples);
  /// Whether a process has these functions. False in a trial alone, which then knows why not.
  bool gets_there(std::span<const HeldFunction* const> functions);

  data::RunnerTrial* trial() noexcept override { return trial_.get(); }
  void let_go() noexcept override;
  std::uint64_t bytes() const noexcept override;
  void trace_to(data::Trace* trace) noexcept override;

  struct Figures {
    std::uint64_t processes = 0;  ///< that live
    std::uint64_t started = 0;    ///< also those that have ended
    std::uint64_t calls = 0;
    double seconds = 0;  ///< of these in functions
  };
  Figures figures() const;

  /// Has all of them end, and later calls refused. Any thread.
  void close() noexcept;
  std::vector<std::int64_t> pids() const;

 private:
  class Lease;
  struct Known {
    std::uint64_t number = 0;
    std::weak_ptr<const void> function;
    std::shared_ptr<const std::string> pickled;
  };
  /// Writes the calls [first, last) of a message.
  using Write = std::function<void(MessageWriter&, std::size_t first, std::size_t last)>;

  struct UnderWay;
  /// Calls that are to be made, the next ones last.
  using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;
  /// Whether a message has all calls, or each process that is idle gets a part of them.
  enum class Spread : std::uint8_t { kOneProcess, kAllProcesses };

  /// `indices`: of the samples, or of one of them.
  std::vector<data::Called> made(std::span<const HeldFunction* const> functions, std::size_t count,
                                 std::span<const std::int64_t> indices, const data::ExpectedSlots& slots, Spread spread,
                                 const Write& write);
  /// Waits for the answer to a message, whose results go to `out`, or what is to be made again to `ranges`.
  void take(UnderWay& calls, std::span<const std::int64_t> indices, const data::ExpectedSlots& slots, Ranges& ranges,
            std::vector<data::Called>& out);
  static std::vector<const HeldFunction*> functions_of(std::span<const Step> run);
  /// Where the calls from `first` on put their results; false: nowhere but into the answer.
  bool name_slots(MessageWriter& message, WorkerProcess& worker, const data::ExpectedSlots& slots,
                  std::size_t first) const;
  void note(WorkerProcess& worker, const Answer& answer, std::size_t calls, std::int64_t index);
  std::uint64_t number_of(const HeldFunction& function);
  /// Has the process know these functions.
  void define(Lease& worker, std::span<const std::uint64_t> numbers);
  /// How the process ended, which is let go of.
  std::string ended(Lease& worker);

  const std::shared_ptr<BatchMemory> batches_ = std::make_shared<BatchMemory>();
  std::atomic<bool> makes_samples_ = false;  ///< whether they call functions of samples, whose results have slots
  HeldFunction start_;
  HeldFunction reap_;
  HeldFunction pickle_;
  std::size_t most_;
  const std::unique_ptr<data::RunnerTrial> trial_;
  std::uint64_t forks_;
  std::atomic<bool> closed_ = false;
  mutable std::mutex mutex_;
  std::condition_variable idle_again_;
  std::vector<std::shared_ptr<WorkerProcess>> workers_;
  std::vector<std::shared_ptr<WorkerProcess>> idle_;
  std::size_t starting_ = 0;
  Figures figures_;
  std::chrono::steady_clock::duration in_functions_{};
  data::Trace* trace_ = nullptr;
  std::map<const void*, Known> known_;
  std::uint64_t numbers_ = 0;
};

}  // namespace penstock::python
