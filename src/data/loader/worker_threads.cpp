#include "data/loader/worker_threads.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::data {

WorkerThreads::~WorkerThreads() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerThreads::start(std::size_t wanted, std::size_t most) {
  try {
    while (!quit_ && threads_.size() < wanted) {
      threads_.emplace_back([this, number = threads_.size()] { serve(number); });
      ::pthread_setname_np(threads_.back().native_handle(), "penstock-load");
    }
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kOutOfMemory,
                core::format("only {} of {} worker threads could be started ({}); use fewer workers", threads_.size(),
                             most, error.code().message()));
  }
}

void WorkerThreads::serve(std::size_t number) {
  work_(number);
  Whole last{nullptr, nullptr};  // may own this: destroyed last, after the lock
  const std::scoped_lock lock(mutex_);
  if (++have_left_ == threads_.size()) last = std::move(left_behind_);
  left_.notify_all();
}

void WorkerThreads::leave_behind(Whole whole) noexcept {
  const std::scoped_lock lock(mutex_);  // unlocked before `whole` is destroyed, which owns the mutex
  for (std::thread& thread : threads_) thread.detach();
  if (have_left_ < threads_.size()) left_behind_ = std::move(whole);
}

}  // namespace penstock::data
