#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "penstock/loader.h"

namespace penstock::data {

/// How many workers a loader should have. Each processor can keep one busy; more of them gain only where they wait for
/// storage. So while the caller has to wait and the workers mostly wait too, more are tried, and kept if the batches
/// come faster by more than chance. Where storage has become fast, as a cache is in the second epoch, the processors
/// are busy; then fewer are tried, and kept if the batches come no slower. Pure: time and figures are the caller's. Not
/// thread-safe.
class WorkerTuner {
 public:
  /// From `start` to `most`; never changes when they are the same.
  WorkerTuner(std::size_t start, std::size_t most, std::size_t processors) noexcept
      : start_(start),
        processors_(processors),
        workers_(start),
        most_(most),
        choice_(start < most ? Choice::kUndecided : Choice::kAsked) {}

  using Choice = LoaderStats::Choice;

  std::size_t workers() const noexcept { return workers_; }
  /// Why it is that number, as far as the last round tells.
  Choice choice() const noexcept { return choice_; }
  /// How many the last trial that has ended had, and its speed over the speed before; 0 before one.
  std::size_t tried() const noexcept { return tried_; }
  double gain() const noexcept { return gain_; }

  /// What happened since the loader was made; all only grow.
  struct Figures {
    double seconds = 0;       ///< while the loader iterated
    double caller_waits = 0;  ///< seconds of the caller in `take`
    double worked = 0;        ///< seconds of the workers in batches, over all of them
    double computed = 0;      ///< processor seconds in that
    double stalled = 0;       ///< seconds in that in which a worker had to wait for a processor
    std::uint64_t batches = 0;
  };
  /// Call after each batch; gives the number of workers from now on.
  std::size_t update(const Figures& figures) noexcept;

 private:
  struct Trial {
    std::size_t before;
    double rate;
  };

  bool round_ended(const Figures& figures) const noexcept;
  void begin_round(const Figures& figures) noexcept { begin_ = figures; }
  void end_round(const Figures& figures) noexcept;
  void begin_trial(std::size_t workers, double rate) noexcept;
  /// Notes how the trial went, and whether its number of workers stays.
  bool keeps(const Trial& trial, double rate) noexcept;

  std::size_t start_;
  std::size_t processors_;
  std::size_t workers_;
  std::size_t most_;
  Choice choice_;
  std::size_t tried_ = 0;
  double gain_ = 0;
  Figures begin_;
  bool warming_ = true;  ///< batches of this round were begun before it
  std::optional<Trial> trial_;
  std::uint64_t rest_ = 0;  ///< rounds to leave things as they are
};

}  // namespace penstock::data
