// A queue is a stream of the driver, either our own, the default one, or one of another library that we only borrow.
// Each call makes the right context current first, because other libraries in the process may have made theirs current.

#include "device/cuda/queue.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "device/cuda/pinned.h"
#include "device/cuda/products.h"
#include "penstock/error.h"

namespace penstock::device::cuda {
namespace {

CUdeviceptr address(const std::byte* pointer) noexcept { return reinterpret_cast<CUdeviceptr>(pointer); }

/// False while work is going on; what failed is thrown.
bool is_done(const Context& context, CUresult result, std::string_view call) {
  if (result == kNotReady) return false;
  context.check(result, call);
  return true;
}

/// That of the device whose memory it is.
ContextPtr context_of(const std::byte* pointer) {
  const std::optional<int> index = device_of(pointer);
  if (!index) {
    throw Error(ErrorCode::kDeviceFailed,
                core::format("the driver does not know {} as memory of a device", static_cast<const void*>(pointer)));
  }
  return Context::of(*index);
}

/// Where the driver tells. A context of somebody else's on the device may be the stream's, not the primary one alone.
std::optional<CUdevice> device_of_stream(const Driver& d, CUstream stream) {
  CUcontext owner = nullptr;
  if (d.stream_context == nullptr || d.stream_context(stream, &owner) != kSuccess) return std::nullopt;
  if (d.context_push(owner) != kSuccess) return std::nullopt;
  CUdevice device = 0;
  const bool known = d.context_device(&device) == kSuccess;
  d.context_pop(&owner);
  return known ? std::optional(device) : std::nullopt;
}

void run_action(void* action) noexcept {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(action));
  (*owned)();
}

}  // namespace

CudaMark::CudaMark(ContextPtr context, CUstream stream) : context_(std::move(context)), event_(context_->take_event()) {
  const CUresult result = driver().event_record(event_, stream);
  if (result == kSuccess) return;
  context_->give_back(event_);
  throw_result(result, "cuEventRecord", context_->index());
}

CudaMark::~CudaMark() { context_->give_back(event_); }

bool CudaMark::done() const {
  const Current current(*context_);
  return is_done(*context_, driver().event_query(event_), "cuEventQuery");
}

void CudaMark::synchronize() const {
  const Current current(*context_);
  context_->check(driver().event_synchronize(event_), "cuEventSynchronize");
}

CudaQueue::CudaQueue(ContextPtr context, CUstream stream, Kind kind) noexcept
    : context_(std::move(context)), stream_(stream), kind_(kind) {}

CudaQueue::~CudaQueue() {
  if (kind_ == Kind::kOwned) quietly_in(*context_, [this](const Driver& d) { d.stream_destroy(stream_); });
}

QueuePtr CudaQueue::make(const ContextPtr& context, int priority) {
  const Current current(*context);
  CUstream stream = nullptr;
  context->check(driver().stream_create(&stream, kStreamNonBlocking, priority), "cuStreamCreateWithPriority");
  return std::make_shared<CudaQueue>(context, stream, Kind::kOwned);
}

QueuePtr CudaQueue::wrap(const ContextPtr& context, CUstream stream) {
  const Current current(*context);
  const std::optional<CUdevice> device = device_of_stream(driver(), stream);
  if (device && *device != context->handle()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the stream {} is not one of {}: name the device that it was made on",
                             static_cast<const void*>(stream), context->device().to_string()));
  }
  return std::make_shared<CudaQueue>(context, stream, Kind::kForeign);
}

void CudaQueue::copy_one(const CopyRange& range, Direction direction) {
  if (direction != Direction::kPeerToPeer) {
    return context_->check(driver().copy(address(range.to), address(range.from), range.bytes, stream_),
                           "cuMemcpyAsync");
  }
  // Memory of a pool is its own device's alone: what copies by one context does not reach it on another.
  const ContextPtr to = context_of(range.to);
  const ContextPtr from = context_of(range.from);
  context_->check(driver().copy_between(address(range.to), to->context(), address(range.from), from->context(),
                                        range.bytes, stream_),
                  "cuMemcpyPeerAsync");
}

void CudaQueue::copy(std::span<const CopyRange> ranges, Direction direction) {
  const Current current(*context_);
  const auto begin = CountClock::now();
  std::size_t copies = 0;
  std::size_t bytes = 0;
  for (const CopyRange& range : ranges) {
    if (range.bytes == 0) continue;
    copy_one(range, direction);
    ++copies;
    bytes += range.bytes;
  }
  count_copies(direction, copies, bytes, begin);
}

void CudaQueue::fill(std::byte* to, std::byte value, std::size_t bytes) {
  if (bytes == 0) return;
  const Current current(*context_);
  context_->check(driver().fill(address(to), std::to_integer<unsigned char>(value), bytes, stream_), "cuMemsetD8Async");
}

void CudaQueue::launch(const Launch& launch) {
  const Current current(*context_);
  const CUfunction function = context_->find_kernel(launch.kernel);
  if (function == nullptr) {
    throw Error(ErrorCode::kUnsupported, core::format("there is no kernel {} for {}: move the tensor to the cpu",
                                                      core::quoted(launch.kernel), device().to_string()));
  }
  // The driver takes the arguments without const and copies them.
  auto** const arguments = const_cast<void**>(launch.arguments.data());
  context_->check(driver().launch(function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                                  launch.block[1], launch.block[2], launch.shared_bytes, stream_, arguments, nullptr),
                  "cuLaunchKernel");
}

bool CudaQueue::multiplies(DType::Code type) { return cuda::multiplies(context_, type); }

bool CudaQueue::multiply(const MatrixProduct& product) { return cuda::multiply(context_, stream_, product); }

void CudaQueue::on_complete(std::function<void()> action) {
  const Current current(*context_);
  auto owned = std::make_unique<std::function<void()>>(std::move(action));
  context_->check(driver().launch_host(stream_, run_action, owned.get()), "cuLaunchHostFunc");
  static_cast<void>(owned.release());
}

MarkPtr CudaQueue::record() {
  const Current current(*context_);
  return std::make_shared<const CudaMark>(context_, stream_);
}

void CudaQueue::wait(const Mark& mark) {
  const auto* const event = dynamic_cast<const CudaMark*>(&mark);
  if (event == nullptr) return mark.synchronize();
  const Current current(*context_);
  context_->check(driver().stream_wait(stream_, event->event(), 0), "cuStreamWaitEvent");
}

bool CudaQueue::done() {
  const Current current(*context_);
  return is_done(*context_, driver().stream_query(stream_), "cuStreamQuery");
}

void CudaQueue::synchronize() {
  const Current current(*context_);
  context_->check(driver().stream_synchronize(stream_), "cuStreamSynchronize");
}

}  // namespace penstock::device::cuda
