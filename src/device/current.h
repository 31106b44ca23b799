#pragma once

// For threads that work for another one: they use its current devices and streams.

#include <vector>

#include "device/queue.h"

namespace penstock::device {

/// What is current in the thread that makes it: its devices and streams. For a thread that does that one's work.
class Current {
 public:
  Current();
  /// Makes them current in the calling thread, a new one, for the rest of its life.
  void adopt() const;

 private:
  std::vector<Device> devices_;
  std::vector<QueuePtr> queues_;
};

}  // namespace penstock::device
