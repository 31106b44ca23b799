#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "device/queue.h"

namespace penstock::device {

/// Which queues use a block of memory, kept beside the block. Uses of our own queues cost nothing until somebody asks:
/// a mark recorded then lies after them. Thread-safe.
class QueueUses {
 public:
  /// Work that was just submitted to `queue` reads the block, or writes it. `mark`: behind it, where there is one.
  void add(const QueuePtr& queue, bool writes, MarkPtr mark = nullptr);
  /// Later work of `queue` runs after the last write.
  void order_after_writes(Queue& queue);
  /// Later work of `queue` runs after all uses.
  void order_after_uses(Queue& queue);
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

  static bool is_over(const Use& use) noexcept;

  MarkPtr last_write(const Queue* except);
  void drop_what_is_over();

  std::mutex mutex_;
  std::vector<Use> uses_;  ///< one for each queue, as long as its work goes on
  /// So many uses are worth asking which are over. Queues come and go: handles on another library's are made anew.
  std::size_t look_through_at_ = 8;
};

}  // namespace penstock::device
