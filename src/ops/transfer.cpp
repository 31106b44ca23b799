// Copies between the host and devices. A copy is ordered behind the last writes to its source and recorded as a use of
// both memories. It is waited for where the caller could read or free memory too early.

#include "ops/transfer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/format.h"
#include "core/view.h"
#include "device/backend.h"
#include "device/buffer_access.h"
#include "device/round_trip.h"
#include "device/staged_copy.h"
#include "ops/kernels.h"
#include "ops/operands.h"
#include "penstock/error.h"

namespace penstock {
namespace ops {
namespace {

bool on_host(const Buffer& buffer) noexcept { return buffer.device().type == DeviceType::kCpu; }

/// The queue reads it by itself, and it is kept until that is done.
bool may_go_on(const Buffer& from) {
  return !on_host(from) || (BufferAccess::uses(from) != nullptr && from.is_pinned());
}

device::Direction direction_of(const Transfer& transfer) noexcept {
  return device::direction_of(transfer.from.device(), transfer.to.device());
}

void wait_for(const Event& copied, const Transfer& transfer) {
  const device::CountedWait counted(direction_of(transfer));
  copied.synchronize();
}

bool is_pageable(const Buffer& buffer) { return on_host(buffer) && !buffer.is_pinned(); }

/// All the same ends. Asking the driver which are pageable takes as long as a small copy.
void start_copies(const device::QueuePtr& queue, std::span<const Transfer> transfers) {
  const device::Direction direction = direction_of(transfers.front());
  std::size_t total = 0;
  for (const Transfer& t : transfers) total += t.from.size();
  const bool between_kinds = on_host(transfers.front().from) != on_host(transfers.front().to);
  const bool may_stage = device::worth_staging(total) && between_kinds;
  std::vector<device::CopyRange> at_once;
  std::vector<device::CopyRange> pageable;
  at_once.reserve(transfers.size());
  for (const Transfer& t : transfers) {
    if (t.from.size() == 0) continue;
    auto& ranges = may_stage && (is_pageable(t.from) || is_pageable(t.to)) ? pageable : at_once;
    ranges.push_back({t.to.data(), t.from.data(), t.from.size()});
  }
  queue->copy(at_once, direction);
  if (!device::copy_staged(queue, pageable, direction)) queue->copy(pageable, direction);
}

}  // namespace

Event submit(std::span<const Transfer> transfers) {
  if (transfers.empty()) return {};
  const Transfer& first = transfers.front();
  const Stream stream = Stream::current(on_host(first.to) ? first.from.device() : first.to.device());
  for (const Transfer& t : transfers) {
    t.from.order_after_writes(stream);
    t.to.order_after_uses(stream);
  }
  start_copies(StreamAccess::queue(stream), transfers);
  for (const Transfer& t : transfers) {
    t.from.record_use(stream, Buffer::Access::kRead);
    t.to.record_use(stream, Buffer::Access::kWrite);
  }
  return stream.record();
}

void transfer(std::span<const Transfer> transfers, const TransferOptions& options) {
  if (transfers.empty()) return;
  const Event copied = submit(transfers);
  const auto goes_on = [](const Transfer& t) { return may_go_on(t.from) && !on_host(t.to); };
  const bool between_devices = !on_host(transfers.front().from) && !on_host(transfers.front().to);
  const bool all_go_on = std::all_of(transfers.begin(), transfers.end(), goes_on);
  if (!all_go_on || (!options.non_blocking && !between_devices)) wait_for(copied, transfers.front());
}

Buffer span_of(const Tensor& tensor) {
  return tensor.buffer().part(tensor.byte_offset(),
                              *core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize()));
}

Tensor copy_span(const Tensor& tensor, Device target, const TransferOptions& options) {
  const Buffer from = span_of(tensor);
  const Buffer to = Buffer::allocate(from.size(), target);
  transfer(std::array{Transfer{from, to}}, options);
  if (device::note_copy(from, to)) device::warn_of_round_trips(tensor, target, {});
  return {to, tensor.dtype(), tensor.shape(), tensor.strides()};
}

}  // namespace ops

namespace {

void require_copyable(const Tensor& from, const Tensor& to) {
  if (from.dtype() != to.dtype()) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("copying {} to {}: equal types were expected, convert with to()", from.dtype().name(),
                             to.dtype().name()));
  }
  if (from.shape() != to.shape() || !from.is_contiguous() || !to.is_contiguous()) {
    if (from.shape() == to.shape() && from.is_contiguous()) {
      // contiguous() of the target would be another tensor, which the copy fills and nobody sees.
      throw Error(ErrorCode::kShapeMismatch,
                  core::format("the elements of the target, of shape {} with strides {}, do not lie one behind the "
                               "other; use target.copy_from(source), which writes to views",
                               to.shape().to_string(), to.strides().to_string()));
    }
    throw Error(ErrorCode::kShapeMismatch,
                core::format("copying shape {} to {}: equal shapes and a contiguous source were expected; use "
                             "contiguous() of the source, or target.copy_from(source)",
                             from.shape().to_string(), to.shape().to_string()));
  }
  if (to.read_only()) throw Error(ErrorCode::kInvalidArgument, "the target of the copy is read-only: clone it first");
}

}  // namespace

Tensor Tensor::to(Device target, TransferOptions options) const {
  if (target == device()) return options.copy ? clone() : *this;
  device::require_device(target);
  const bool to_host = target.type == DeviceType::kCpu;
  // Elements are put together where that needs no kernel.
  const Tensor copied =
      to_host ? ops::copy_span(*this, target, options).contiguous() : ops::copy_span(contiguous(), target, options);
  return copied.with_requires_grad(requires_grad_);
}

Tensor Tensor::to(Device target, const DType& dtype, TransferOptions options) const {
  const bool narrows = dtype.itemsize() < dtype_.itemsize();
  const TransferOptions as_needed{.non_blocking = options.non_blocking};
  const Tensor moved = narrows ? to(dtype).to(target, as_needed) : to(target, as_needed).to(dtype);
  const bool same = moved.buffer_.shares_memory_with(buffer_);
  return same && options.copy ? clone() : moved;
}

Tensor Tensor::pin_memory() const {
  if (device().type != DeviceType::kCpu) {
    throw Error(
        ErrorCode::kDeviceMismatch,
        core::format("memory of {} cannot be pinned, only the cpu's can: use cpu() first", device().to_string()));
  }
  if (is_pinned()) return *this;
  const Tensor out(Buffer::allocate_pinned(nbytes()), dtype_, shape_);
  ops::copy(*this, out);
  return out.with_requires_grad(requires_grad_);
}

namespace {

/// Whether some byte belongs to both.
bool overlap(const Tensor& a, const Tensor& b) {
  if (a.device() != b.device()) return false;
  const auto bytes = [](const Tensor& t) { return *core::view_span(t.shape(), t.strides(), t.dtype().itemsize()); };
  const auto first = [](const Tensor& t) { return reinterpret_cast<std::uintptr_t>(t.data()); };
  return first(a) < first(b) + bytes(b) && first(b) < first(a) + bytes(a);
}

}  // namespace

void Tensor::copy_from(const Tensor& source) const {
  ops::require_defined("copy_from", {"the target", *this});
  ops::require_defined("copy_from", {"the source", source});
  ops::require_not_read_only(*this, "copy_from");
  ops::require_own_elements(*this);
  ops::require_same_shape(source, *this, "copying");
  if (source.dtype() != dtype_) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("copying from {} to {}: equal types were expected; convert with to()",
                             source.dtype().name(), dtype_.name()));
  }
  if (nbytes() == 0) return;
  const Tensor here = source.to(device());
  ops::copy(overlap(here, *this) ? here.clone() : here, *this);
}

Event Tensor::copy_to(const Tensor& target) const {
  require_copyable(*this, target);
  if (device().type == DeviceType::kCpu && target.device().type == DeviceType::kCpu) {
    ops::copy(*this, target);
    return {};
  }
  const ops::Transfer transfer{ops::span_of(*this), ops::span_of(target)};
  Event copied = ops::submit(std::array{transfer});
  const auto waits = [](const Tensor& t) {
    return t.device().type == DeviceType::kCpu && BufferAccess::uses(t.buffer_) == nullptr;
  };
  // Nothing else would keep such memory until the copy is done.
  if (waits(*this) || waits(target)) ops::wait_for(copied, transfer);
  if (device::note_copy(transfer.from, transfer.to)) device::warn_of_round_trips(*this, target.device(), {});
  return copied;
}

}  // namespace penstock
