#include "device/queue_uses.h"

#include <algorithm>

#include "penstock/error.h"

namespace penstock::device {

void QueueUses::add(const QueuePtr& queue, bool writes, MarkPtr mark) {
  // A foreign queue may be destroyed when its work is done.
  if (mark == nullptr && queue->is_foreign()) mark = queue->record();
  const std::scoped_lock lock(mutex_);
  auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& u) { return u.queue == queue; });
  if (writes) {
    for (Use& other : uses_) other.last_write = false;
  }
  if (use == uses_.end()) {
    drop_what_is_over();
    use = uses_.insert(uses_.end(), Use{queue, nullptr, false});
  }
  use->mark = std::move(mark);
  use->last_write = use->last_write || writes;
}

bool QueueUses::is_over(const Use& use) noexcept {
  try {
    return use.mark ? use.mark->done() : use.queue->done();
  } catch (const Error&) {
    return false;  // whoever waits for it is told
  }
}

void QueueUses::drop_what_is_over() {
  if (uses_.size() < look_through_at_) return;
  std::erase_if(uses_, is_over);
  look_through_at_ = std::max(look_through_at_, 2 * uses_.size());
}

MarkPtr QueueUses::last_write(const Queue* except) {
  const std::scoped_lock lock(mutex_);
  for (Use& use : uses_) {
    if (!use.last_write || use.queue.get() == except) continue;
    if (use.mark && is_over(use)) {
      use.last_write = false;  // as memory that nobody writes, for all who ask from now on
      return nullptr;
    }
    return use.mark ? use.mark : use.queue->record();
  }
  return nullptr;
}

void QueueUses::order_after_writes(Queue& queue) {
  if (const MarkPtr mark = last_write(&queue)) queue.wait(*mark);
}

void QueueUses::order_after_uses(Queue& queue) {
  std::vector<MarkPtr> marks;
  {
    const std::scoped_lock lock(mutex_);
    for (const Use& use : uses_) {
      if (use.queue.get() != &queue) marks.push_back(use.mark ? use.mark : use.queue->record());
    }
  }
  for (const MarkPtr& mark : marks) queue.wait(*mark);
}

void QueueUses::wait_for_writes() {
  if (const MarkPtr mark = last_write(nullptr)) mark->synchronize();
}

std::vector<MarkPtr> QueueUses::take(const Queue* except) {
  const std::scoped_lock lock(mutex_);
  std::vector<MarkPtr> out;
  for (Use& use : uses_) {
    if (use.queue.get() != except) out.push_back(use.mark ? use.mark : use.queue->record());
  }
  uses_.clear();
  return out;
}

}  // namespace penstock::device
