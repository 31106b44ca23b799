#pragma once

// How far a load is, told to a function of the program while it runs, without its layers handing a callback down: they
// add to the meter of the thread that began it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "penstock/progress.h"

namespace penstock::core {

/// How far the operation of one thread is. Any thread that works for it adds what it did; the function is called in the
/// thread that began it.
class ProgressMeter {
 public:
  explicit ProgressMeter(ProgressFunction function) : function_(std::move(function)) {}

  /// That of the calling thread, or null: for who begins an operation, and for who starts threads that work for it.
  static ProgressMeter* current() noexcept;

  /// Any thread: `bytes` more are done. May throw what the function throws.
  void advance(std::uint64_t bytes);

 private:
  friend class MeteredOperation;
  using Clock = std::chrono::steady_clock;

  void tell();

  ProgressFunction function_;
  std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<std::uint64_t> done_ = 0;
  std::uint64_t total_ = 0;
  unsigned depth_ = 0;  ///< operations within operations count as one
  Clock::time_point told_{};
};

/// One operation of the calling thread, while it lives; nothing where the thread has no meter.
class MeteredOperation {
 public:
  MeteredOperation() noexcept;
  ~MeteredOperation();
  MeteredOperation(const MeteredOperation&) = delete;
  MeteredOperation& operator=(const MeteredOperation&) = delete;

  /// Whether the total is wanted. Call begin() then.
  explicit operator bool() const noexcept { return meter_ != nullptr; }
  void begin(std::uint64_t total);
  /// Everything is done: tells that.
  void end();

 private:
  ProgressMeter* meter_;
  bool is_outermost_ = false;
};

}  // namespace penstock::core
