#pragma once

// Who made which requests. A meter belongs to whoever wants to know (a load, a loader); a scope says which meter the
// calling thread works for. Threads that work for another one enter its meter by a scope of their own (work_queue.cpp).

#include <atomic>
#include <mutex>

#include "penstock/report.h"

namespace penstock::io::remote {

/// Adds up traffic. Thread-safe.
class TrafficMeter {
 public:
  /// What is added goes to `around` too, which must outlive this; or to nobody else.
  explicit TrafficMeter(TrafficMeter* around = nullptr) noexcept : around_(around) {}

  void add(const RemoteTraffic& traffic) noexcept;
  RemoteTraffic total() const noexcept;

 private:
  TrafficMeter* const around_;
  std::atomic<bool> has_some_ = false;  ///< without it nobody locks: most loads ask, and have no traffic
  mutable std::mutex mutex_;
  RemoteTraffic total_;
};

/// While it lives, what the calling thread reads by URL is added to the meter; of nested scopes, to the innermost.
class TrafficScope {
 public:
  /// The meter must outlive it; null: nobody wants to know.
  explicit TrafficScope(TrafficMeter* meter) noexcept;
  ~TrafficScope();
  TrafficScope(const TrafficScope&) = delete;
  TrafficScope& operator=(const TrafficScope&) = delete;

  /// The calling thread's meter, or null.
  static TrafficMeter* current() noexcept;

 private:
  TrafficMeter* const before_;
};

/// Adds to the meter of the calling thread, if it has one.
void note_traffic(const RemoteTraffic& traffic) noexcept;

}  // namespace penstock::io::remote
