// Tasks of a job are taken in order, one by one, by whoever is free. Its owner takes part too, and goes on when all of
// them are done. After a failure only tasks before the failing one matter, and those have been taken already: so the
// error is that of the first failing task, however many threads there are.

#include "data/loader/worker_crew.h"

#include <algorithm>
#include <atomic>

namespace penstock::data {

struct WorkerCrew::Job {
  Job(std::size_t count, const Task& what) : tasks(count), task(what) {}

  const std::size_t tasks;
  const Task& task;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> failed = static_cast<std::size_t>(-1);  ///< the first task that did
  std::mutex error_mutex;
  std::exception_ptr error;
  std::size_t helpers = 0;  ///< guarded by the crew's mutex

  bool has_tasks() const noexcept { return next < tasks && next < failed; }

  void run(Scratch& scratch, Figures& figures) {
    for (std::size_t number = next++; number < tasks && number < failed; number = next++) {
      try {
        task(number, scratch, figures);
      } catch (...) {
        const std::scoped_lock lock(error_mutex);
        if (number < failed) {
          failed = number;
          error = std::current_exception();
        }
      }
    }
  }
};

void WorkerCrew::share(std::size_t tasks, Scratch& scratch, Figures& figures, const Task& task) {
  Job job(tasks, task);
  {
    const std::scoped_lock lock(mutex_);
    open_.push_back(&job);
    if (call_) call_();
  }
  work_.notify_all();
  job.run(scratch, figures);
  {
    std::unique_lock lock(mutex_);
    open_.erase(std::find(open_.begin(), open_.end(), &job));
    done_.wait(lock, [&] { return job.helpers == 0; });
  }
  if (job.error) std::rethrow_exception(job.error);
}

bool WorkerCrew::wants_help() const {
  return std::any_of(open_.begin(), open_.end(), [](const Job* job) { return job->has_tasks(); });
}

void WorkerCrew::help(Scratch& scratch, Figures& figures, std::unique_lock<std::mutex>& lock) {
  const auto at = std::find_if(open_.begin(), open_.end(), [](const Job* job) { return job->has_tasks(); });
  if (at == open_.end()) return;
  Job& job = **at;
  ++job.helpers;
  lock.unlock();
  figures.clock.start();
  job.run(scratch, figures);
  figures.clock.move_to(figures.stats);
  scratch.reset();  // without the lock, because what it releases may wait for the interpreter's lock
  lock.lock();
  if (--job.helpers == 0) done_.notify_all();
}

}  // namespace penstock::data
