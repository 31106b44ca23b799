#pragma once

// The threads of a loader, and how they end: a worker whose storage hangs is left behind with all that it uses.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::data {

/// Thread-safe, by the mutex of who has them; what says "under the lock" wants it held.
class WorkerThreads {
 public:
  /// The object that the threads use, and how to destroy it.
  using Whole = std::unique_ptr<void, void (*)(void*)>;

  /// Each thread calls `work` with its number, once.
  WorkerThreads(std::mutex& mutex, std::function<void(std::size_t)> work) : mutex_(mutex), work_(std::move(work)) {}
  /// Waits for all of them.
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Under the lock: starts threads up to the number `wanted`, of `most` that are for this work. kOutOfMemory when the
  /// system gives no more.
  void start(std::size_t wanted, std::size_t most);
  std::size_t count() const noexcept { return threads_.size(); }
  /// Under the lock: `work` is to return, and no thread is started any more.
  void quit() noexcept { quit_ = true; }
  bool quits() const noexcept { return quit_; }
  /// Whether all have ended within `patience`. `lock` is held.
  bool wait(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::duration patience) {
    return left_.wait_for(lock, patience, [this] { return have_left_ == threads_.size(); });
  }
  /// The last one that ends destroys `whole`, which this is part of.
  void leave_behind(Whole whole) noexcept;

 private:
  void serve(std::size_t number);

  std::mutex& mutex_;
  const std::function<void(std::size_t)> work_;
  std::vector<std::thread> threads_;
  std::condition_variable left_;  ///< a worker has ended
  bool quit_ = false;
  std::size_t have_left_ = 0;  ///< how many of threads_ have ended
  Whole left_behind_{nullptr, nullptr};
};

}  // namespace penstock::data
