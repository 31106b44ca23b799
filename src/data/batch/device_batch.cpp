#include "data/batch/device_batch.h"

#include <array>
#include <utility>
#include <vector>

#include "device/queue.h"

namespace penstock::data {
namespace {

/// A tensor in each block of memory that the batch has on a device: one block, but where the device did transforms or
/// functions of the program made the batch.
std::vector<Tensor> tensors_on_device(const Value& root) {
  std::vector<Tensor> out;
  std::vector<Value> pending{root};
  while (!pending.empty()) {
    const Value value = std::move(pending.back());
    pending.pop_back();
    if (value.is(Value::Kind::kTensor)) {
      const Tensor tensor = value.as_tensor();
      if (tensor.device().type == DeviceType::kCpu) return {};
      if (out.empty() || !out.back().buffer().shares_memory_with(tensor.buffer())) out.push_back(tensor);
    } else if (value.is(Value::Kind::kDict)) {
      for (std::size_t i = 0; i < value.size(); ++i) pending.push_back(value.item(i).second);
    } else if (value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple)) {
      for (std::size_t i = 0; i < value.size(); ++i) pending.push_back(value[i]);
    }
  }
  return out;
}

}  // namespace

DeviceBatches::DeviceBatches(Device device) {
  if (device.type == DeviceType::kCpu) return;
  copies_.emplace(device);
  steps_.emplace(device);
}

Buffer DeviceBatches::send(const Buffer& host) const {
  // Memory that the copies' own stream takes and gives back needs no waiting for others.
  const StreamGuard guard(*copies_);
  Buffer block = Buffer::allocate(host.size(), copies_->device());
  const std::array range{device::CopyRange{block.data(), host.data(), host.size()}};
  StreamAccess::queue(*copies_)->copy(range, device::Direction::kHostToDevice);
  // Later batches use the same stream. With an event of its own, a user of this batch waits for this copy alone.
  const Event copied = copies_->record();
  host.record_use(*copies_, Buffer::Access::kRead, copied);
  block.record_use(*copies_, Buffer::Access::kWrite, copied);
  return block;
}

Batch deliver(Batch batch) {
  for (const Tensor& tensor : tensors_on_device(batch.value)) {
    const Stream stream = Stream::current(tensor.device());
    tensor.buffer().order_after_writes(stream);
    tensor.buffer().record_use(stream, Buffer::Access::kRead);
  }
  return batch;
}

}  // namespace penstock::data
