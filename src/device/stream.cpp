#include "penstock/stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "device/current.h"
#include "device/queue.h"

namespace penstock {
namespace {

/// Where this thread's work goes, for the devices where that is not the default queue.
std::vector<device::QueuePtr>& guarded_queues() {
  thread_local std::vector<device::QueuePtr> queues;
  return queues;
}

/// Null stands for the default queue. What was there before; putting that back asks nothing of the backend, which may
/// have failed by then.
device::QueuePtr exchange_current_queue(Device device, device::QueuePtr queue) {
  std::vector<device::QueuePtr>& queues = guarded_queues();
  const auto found =
      std::ranges::find_if(queues, [device](const device::QueuePtr& other) { return other->device() == device; });
  if (found == queues.end()) {
    if (queue) queues.push_back(std::move(queue));
    return nullptr;
  }
  std::swap(*found, queue);
  if (!*found) queues.erase(found);
  return queue;
}

}  // namespace

namespace device {

QueuePtr current_queue(Device device) {
  for (const QueuePtr& queue : guarded_queues()) {
    if (queue->device() == device) return queue;
  }
  return backend_for(device.type).default_queue(device.index);
}

Current::Current() : queues_(guarded_queues()) {
  for (const Backend* backend : backends()) devices_.emplace_back(backend->type(), backend->current_device());
}

void Current::adopt() const {
  for (const Device device : devices_) backend_for(device.type).set_current_device(device.index);
  guarded_queues() = queues_;
}

}  // namespace device

bool Event::done() const { return !mark_ || mark_->done(); }

void Event::synchronize() const {
  if (mark_) mark_->synchronize();
}

Stream::Stream() : queue_(device::backend_for(DeviceType::kCpu).default_queue(0)) {}

Stream::Stream(Device device, int priority)
    : queue_(device::backend_for(device.type).make_queue(device.index, priority)) {}

Stream Stream::current(Device device) { return Stream(device::current_queue(device)); }

Stream Stream::default_of(Device device) {
  return Stream(device::backend_for(device.type).default_queue(device.index));
}

Stream Stream::wrap(Device device, void* native) {
  return Stream(device::backend_for(device.type).import_queue(device.index, native));
}

const Device Stream::device() const noexcept { return queue_->device(); }
void* Stream::native() const noexcept { return queue_->native(); }
Event Stream::record() const { return Event(queue_->record()); }

void Stream::wait(const Event& event) const {
  if (event.mark_) queue_->wait(*event.mark_);
}

bool Stream::done() const { return queue_->done(); }
void Stream::synchronize() const { queue_->synchronize(); }

bool operator==(const Stream& a, const Stream& b) noexcept {
  return a.queue_ == b.queue_ || (a.device() == b.device() && a.native() == b.native());
}

StreamGuard::StreamGuard(const Stream& stream) : device_(stream.device()), of_(stream.device()) {
  const bool is_default = stream.queue_ == device::backend_for(of_.type).default_queue(of_.index);
  before_ = exchange_current_queue(of_, is_default ? nullptr : stream.queue_);
}

StreamGuard::~StreamGuard() { exchange_current_queue(of_, std::move(before_)); }

}  // namespace penstock
