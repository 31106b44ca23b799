#pragma once

// Where the program's functions run when that is not the thread that wants their results: another process. Datasets ask
// RunnerScope::current() before they call a function, and hand a runner several calls at once, because a way there and
// back costs more than many a function.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/sample/runner_trial.h"
#include "data/sample/user_call.h"
#include "data/sample/work.h"
#include "data/trace/trace.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "penstock/value.h"

namespace penstock::data {

/// A function of the program that gives the sample of an index.
using IndexFunction = std::function<Value(std::int64_t)>;

/// What became of one call.
struct Called {
  Value value = {};
  std::optional<Error> error = {};
  /// Of a call that failed, or ended its process, while it was at one of several samples: its position.
  std::optional<std::size_t> at_sample = {};
  /// There is no value: the run's last step does not keep the sample.
  bool left_out = false;
};

/// Makes calls elsewhere. Any number of threads may use it at once. What it gives for a call is what the function would
/// have given here.
class Runner {
 public:
  /// A function of a run, in which each gets what the one before it gave.
  struct Step {
    const UserFunction* function = nullptr;
    std::uint32_t stage = 0;  ///< RandomKey::stage
    /// The last one alone: it tells of its sample whether that is kept, and the result is that sample.
    bool keeps = false;
  };

  Runner() = default;
  virtual ~Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Whether it knows how to call these; others are called where they are.
  virtual bool takes(const UserFunction& function) const noexcept = 0;
  virtual bool takes(const IndexFunction& function) const noexcept = 0;
  /// The run for each sample. As many results as samples; kCancelled when the calling thread is to stop, and errors
  /// that are of no sample, are thrown. `slots`: where the batch has the results' tensors expected, in their order;
  /// those that lie there when they come were put there elsewhere.
  virtual std::vector<Called> call(std::span<const Step> run, std::span<const Value> samples,
                                   std::span<const std::int64_t> indices, const EpochSeed& seed,
                                   const ExpectedSlots& slots) = 0;
  virtual std::vector<Called> call(const IndexFunction& get, std::span<const std::int64_t> indices,
                                   const ExpectedSlots& slots) = 0;

  /// Memory for a batch, to which whoever calls the functions can write too; none where there is no such memory, or no
  /// use in it.
  virtual Buffer batch_memory(std::size_t) { return {}; }

  /// Who decides whether it is asked at all, or null: it is.
  virtual RunnerTrial* trial() noexcept { return nullptr; }
  /// Its workers are not needed any more; it may be asked again all the same.
  virtual void let_go() noexcept {}
  /// Bytes of memory that calls and answers lie in, without the answers that somebody has.
  virtual std::uint64_t bytes() const noexcept { return 0; }
  /// Each of its workers gets a lane there; null: none. The trace lives until it is told of another.
  virtual void trace_to(Trace*) noexcept {}
};

/// A batch that the calling thread makes: until this goes, RunnerScopes follow what the runner's trial says at its
/// beginning.
class RunnerTurn {
 public:
  /// Null: there is no runner.
  explicit RunnerTurn(Runner* runner);
  ~RunnerTurn();
  RunnerTurn(const RunnerTurn&) = delete;
  RunnerTurn& operator=(const RunnerTurn&) = delete;

  /// Whether the calling thread makes a batch whose functions are called here.
  static bool calls_here() noexcept;
  /// The batch is made; 0 samples where it was left out.
  void end(double seconds, std::size_t samples);

 private:
  friend class RunnerScope;

  Runner* runner_;
  RunnerTurn* before_;
  CallWay way_ = CallWay::kElsewhere;
  bool asked_ = false;  ///< whether anybody looked for the runner
};

/// While it lives, the calling thread has the program's functions called by `runner`, unless its turn says otherwise.
/// Scopes nest.
class RunnerScope {
 public:
  explicit RunnerScope(Runner* runner) noexcept;
  ~RunnerScope();
  RunnerScope(const RunnerScope&) = delete;
  RunnerScope& operator=(const RunnerScope&) = delete;

  /// Null: the thread calls them itself.
  static Runner* current() noexcept;

 private:
  Runner* before_;
};

}  // namespace penstock::data
