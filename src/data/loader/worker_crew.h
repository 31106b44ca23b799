#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "data/sample/crew.h"
#include "data/sample/work.h"

namespace penstock::data {

/// The workers of a loader. One that has read the headers of a batch offers its payload, file by file; one that is done
/// with its own batch takes part, before it begins another: so the oldest batch is ready soonest, and fewer blocks of
/// memory are in use at a time. Thread-safe.
class WorkerCrew final : public Crew {
 public:
  /// `mutex` guards it; `work` is waited on by workers that have nothing to do. `call`, if any, is called under the
  /// lock when there is something to share: it starts the workers that were not needed before.
  WorkerCrew(std::mutex& mutex, std::condition_variable& work, std::function<void()> call = {})
      : mutex_(mutex), work_(work), call_(std::move(call)) {}

  void share(std::size_t tasks, Scratch& scratch, Figures& figures, const Task& task) override;
  /// Whether `help` would find something to do. Under the lock.
  bool wants_help() const;
  /// Takes part in what was offered first, until nothing of it is left. `lock` is held, but not meanwhile.
  void help(Scratch& scratch, Figures& figures, std::unique_lock<std::mutex>& lock);

 private:
  struct Job;

  std::mutex& mutex_;
  std::condition_variable& work_;
  std::function<void()> call_;
  std::condition_variable done_;
  std::vector<Job*> open_;  ///< oldest first
};

}  // namespace penstock::data
