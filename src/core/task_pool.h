#pragma once

// The threads of loads and checks. parallel_for is the way to share out work; a loader's workers are threads of its own
// (data/loader).

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace penstock::core {

/// A fixed set of threads that run submitted tasks in order of submission. A task gets the pool's stop token and must
/// return soon after it is set; `stop` drops what is queued, so that it takes as long as the longest task's reaction.
/// Tasks must not throw. All members may be called from any thread; the destructor stops and joins.
class TaskPool {
 public:
  using Task = std::function<void(std::stop_token)>;

  /// Starts `threads` >= 1 threads, named `name` for debuggers (15 characters kept).
  TaskPool(std::size_t threads, const std::string& name);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  std::size_t size() const noexcept { return threads_.size(); }
  /// Queues `task`; after `stop` it is dropped and false is returned.
  bool submit(Task task);
  /// Drops queued tasks, sets the stop token and joins. Idempotent. Called from a task of this pool it does not wait:
  /// the destructor joins.
  void stop() noexcept;

 private:
  void run(const std::string& name);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Task> queue_;
  std::stop_source stop_;
  std::mutex join_mutex_;
  std::vector<std::thread> threads_;
  std::vector<std::thread::id> ids_;  ///< constant once constructed, unlike threads_
};

/// Processors this process may use: the affinity mask and the cgroup's CPU quota, at least 1.
std::size_t usable_cpus() noexcept;

/// Runs body(i) for every i in [0, count) on up to `threads` threads, the caller's among them, and returns when all are
/// done. Indices are taken in order. The first exception stops further indices and is rethrown here.
void parallel_for(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& body);

}  // namespace penstock::core
