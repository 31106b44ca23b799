#pragma once

#include <mutex>
#include <vector>

#include "device/queue.h"

namespace penstock::device {

/// Which queues use a block of memory, kept beside the block. Uses of our own queues cost nothing until somebody asks:
/// a mark recorded then lies after them. Thread-safe.
class UseLog {
 public:
  /// Work that was just submitted to `queue` reads the block, or writes it.
  void add(const QueuePtr& queue, bool writes);
  /// Later work of `queue` runs after the last write.
  void order_after_writes(Queue& queue);
  /// The host waits for the last write.
  void wait_for_writes();
  /// Marks after all uses, but for those of `except`, whose own order does; forgets them.
  std::vector<MarkPtr> take(const Queue* except = nullptr);

 private:
  struct Use {
    QueuePtr queue;
    MarkPtr mark;  ///< null: not recorded yet
    bool last_write = false;
  };

  MarkPtr last_write(const Queue* except);

  std::mutex mutex_;
  std::vector<Use> uses_;  ///< one for each queue
};

}  // namespace penstock::device
