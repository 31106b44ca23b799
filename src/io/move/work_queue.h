#pragma once

// The queue behind every load, slice and decode. Each of them is a plan: something with a size and an n-th part. The
// queue hands the numbers of the parts to threads, and the caller says what a thread does with one (engine.cpp: ranges
// and the steps after them; strided_read.cpp: parts of a slice; ring_decode.cpp: storages that are decoded on their
// way). Batches read without it (data/batch/mover.cpp, data/files/large_file.cpp).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "io/move/arrivals.h"
#include "io/move/device_writes.h"
#include "io/read/depth.h"
#include "penstock/report.h"

namespace penstock::io {

/// What threads have read and how long that took, added up.
struct Spent {
  std::uint64_t read_bytes = 0;
  std::uint64_t mapped_bytes = 0;  ///< of them, copied out of a mapping
  double read_seconds = 0;
  double decode_seconds = 0;  ///< of work on bytes that have arrived: checksums, inflating, swapping, scattering
  std::size_t threads = 0;    ///< that took part
  bool refused = false;       ///< the system gave no more threads

  void add(const Spent& other) noexcept;
  void add_to(Report& report) const noexcept;
};

/// A number that a thread works on.
struct WorkItem {
  std::uint64_t index = 0;
  bool is_step = false;  ///< the number of a step of the queue's arrivals; else of a part of the plan
};

class WorkQueue;

/// One thread's access to a queue.
class Worker {
 public:
  explicit Worker(WorkQueue& queue) noexcept : queue_(queue) {}

  /// Reports the last item as done and gives the next one; nothing when all are handed out or another thread has
  /// failed. kCancelled.
  std::optional<WorkItem> next();
  /// Whether the rest of a long item is still wanted. False once another thread has failed. kCancelled.
  bool goes_on() const;
  /// Whether anyone wants to know what requests bring.
  bool has_depth() const noexcept;
  /// A request has brought so many bytes.
  void arrived(std::uint64_t bytes);

  Spent spent = {};

 private:
  WorkQueue& queue_;
  std::optional<WorkItem> item_;
  std::uint64_t told_ = 0;  ///< of the bytes read, to whoever wants to know how far the move is
};

struct WorkOptions {
  std::size_t threads = 1;
  Depth* depth = nullptr;  ///< in place of that: how many work follows what they bring, as it says
  std::stop_token stop = {};
  Arrivals* arrivals = nullptr;          ///< steps that become items when the parts before them are done
  const DeviceWrites* writes = nullptr;  ///< settled when a thread fails; the caller calls `finish`
};

/// Runs `work` on threads, one of which is the caller's, until the parts [0, parts) and all steps are done.
/// When one throws, the others stop after their current item, copies that are in flight are settled, and the first
/// error is rethrown.
Spent work_through(std::uint64_t parts, const WorkOptions& options, const std::function<void(Worker&)>& work);

/// kCancelled when `stop` was requested.
void require_going_on(const std::stop_token& stop);

}  // namespace penstock::io
