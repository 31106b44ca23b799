// NVIDIA's devices. What one needs (context, memory, queue) is made when it is first used, and kept. What any device
// can do (pinning) is asked of one that is in use already, so that no context is made for nothing.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "device/cuda/memory.h"
#include "device/cuda/pinned.h"
#include "device/cuda/products.h"
#include "device/cuda/queue.h"
#include "penstock/error.h"

namespace penstock::device {
namespace cuda {
namespace {

/// What is kept of each device that was used.
struct Used {
  explicit Used(ContextPtr device_context)
      : context(std::move(device_context)),
        memory(std::make_shared<Memory>(context)),
        pinned(std::make_shared<PinnedMemory>(context)),
        queue(std::make_shared<CudaQueue>(context, nullptr, CudaQueue::Kind::kDefault)) {}

  ContextPtr context;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<PinnedMemory> pinned;
  QueuePtr queue;
};

thread_local int current_index = 0;

class CudaBackend final : public Backend {
 public:
  DeviceType type() const noexcept override { return DeviceType::kCuda; }
  std::string_view name() const noexcept override { return "cuda"; }
  int dlpack_type() const noexcept override { return 2; }

  int device_count() const noexcept override {
    // The driver fixes what is visible when it starts, which is just before this.
    static const int count = [] {
      int n = 0;
      const Driver* const d = find_driver();
      return d != nullptr && d->device_count(&n) == kSuccess ? n : 0;
    }();
    return count;
  }
  std::string why_none() const override {
    if (device_count() > 0) return {};
    const std::string reason = why_no_driver();
    return reason.empty() ? "the NVIDIA driver shows this process no device" : reason;
  }
  int current_device() const noexcept override { return current_index; }
  void set_current_device(int index) const noexcept override { current_index = index; }

  DeviceProperties properties(int index) const override;
  MemoryInfo memory(int index) const override {
    const MemoryStats now = stats(index);
    return {.free_bytes = now.free_bytes, .total_bytes = now.total_bytes};
  }
  MemoryStats stats(int index) const override { return used(index).memory->stats(); }
  void set_memory_cap(int index, std::optional<std::uint64_t> bytes) const override {
    used(index).memory->set_cap(bytes);
  }
  void empty_cache(int index) const override {
    if (!Context::find(index)) return;
    const Used& device = used(index);
    device.memory->empty_cache();
    device.pinned->empty_cache();
  }
  void synchronize(int index) const override {
    const Context& context = *used(index).context;
    const Current current(context);
    context.check(driver().context_synchronize(), "cuCtxSynchronize");
  }

  Buffer allocate(int index, std::size_t bytes, Purpose) const override {
    return used(index).memory->allocate(bytes, current_queue(Device(type(), index)));
  }
  Buffer wrap(int index, void* data, std::size_t bytes, std::shared_ptr<const void> owner,
              bool read_only) const override {
    return used(index).memory->wrap(data, bytes, std::move(owner), read_only);
  }
  Buffer allocate_pinned(std::size_t bytes) const override {
    return by_any<Buffer>([bytes](const Used& device) { return device.pinned->allocate(bytes); });
  }
  bool is_pinned(const void* address) const noexcept override { return cuda::is_pinned(address); }
  std::optional<int> device_of(const void* address) const noexcept override { return cuda::device_of(address); }
  std::shared_ptr<const void> register_host(void* data, std::size_t bytes) const override {
    return by_any<std::shared_ptr<const void>>(
        [=](const Used& device) { return cuda::register_host(device.context, data, bytes); });
  }

  void in_context(int index, const std::function<void()>& action) const override {
    const Current current(*used(index).context);
    action();
  }
  QueuePtr default_queue(int index) const override { return used(index).queue; }
  QueuePtr make_queue(int index, int priority) const override { return CudaQueue::make(used(index).context, priority); }
  QueuePtr import_queue(int index, void* native) const override {
    // 1 is how Python's protocols write the default stream, 2 the calling thread's own, which the driver knows too.
    const Used& device = used(index);
    if (native == nullptr || native == legacy_stream()) return device.queue;
    return CudaQueue::wrap(device.context, static_cast<CUstream>(native));
  }
  bool has_kernel(int index, std::string_view kernel) const override {
    const ContextPtr& context = used(index).context;
    const Current current(*context);
    return context->find_kernel(kernel) != nullptr;
  }
  ProductLibrary product_library(int index) const override { return cuda::product_library(used(index).context); }

 private:
  // NOLINTNEXTLINE(performance-no-int-to-ptr): CU_STREAM_LEGACY is a number
  static void* legacy_stream() noexcept { return reinterpret_cast<void*>(std::uintptr_t{1}); }

  const Used& used(int index) const {
    require_device(Device(type(), index));
    require_not_forked();
    const std::scoped_lock lock(mutex_);
    auto at = used_.find(index);
    if (at == used_.end()) at = used_.try_emplace(index, Context::of(index)).first;
    return at->second;
  }

  /// The current device, if it is in use already; else another that is, so that pinning begins with none for nothing.
  const Used& any_used() const {
    {
      const std::scoped_lock lock(mutex_);
      if (!used_.empty() && !used_.contains(current_index)) return used_.begin()->second;
    }
    return used(current_index);
  }

  /// What holds for all devices, asked for by one that works: any_used(), or another where that has failed.
  template <class Result>
  Result by_any(const std::function<Result(const Used&)>& action) const {
    const std::vector<const Used*> devices = used_from(any_used());
    for (std::size_t i = 0;; ++i) {
      try {
        return action(*devices[i]);
      } catch (const Error& error) {
        if (!has_failed(error) || i + 1 == devices.size()) throw;
      }
    }
  }
  static bool has_failed(const Error& error) noexcept {
    return error.code() == ErrorCode::kDeviceFailed || error.code() == ErrorCode::kNoDevice;
  }
  /// All that are in use, `first` before the others.
  std::vector<const Used*> used_from(const Used& first) const {
    const std::scoped_lock lock(mutex_);
    std::vector<const Used*> out = {&first};
    for (const auto& [index, used] : used_) {
      if (&used != &first) out.push_back(&used);
    }
    return out;
  }

  mutable std::mutex mutex_;
  mutable std::map<int, Used> used_;
};

DeviceProperties CudaBackend::properties(int index) const {
  require_device(Device(type(), index));
  require_not_forked();
  const Driver& d = driver();
  CUdevice device = 0;
  check(d.device_get(&device, index), "cuDeviceGet", index);
  std::array<char, 256> name{};
  check(d.device_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName", index);
  std::size_t bytes = 0;
  check(d.device_total_mem(&bytes, device), "cuDeviceTotalMem", index);
  // Old drivers do not know all of them.
  const auto attribute = [&](int which, int otherwise) {
    int value = otherwise;
    return d.device_attribute(&value, which, device) == kSuccess ? value : otherwise;
  };
  DeviceProperties out;
  out.name = name.data();
  out.total_bytes = bytes;
  out.numa_node = attribute(kAttributeHostNuma, -1);
  out.unified_memory = attribute(kAttributeIntegrated, 0) != 0;
  out.alignment = 256;
  out.driver_version = d.version;
  out.major = attribute(kAttributeMajor, 0);
  out.minor = attribute(kAttributeMinor, 0);
  out.multiprocessors = attribute(kAttributeMultiprocessors, 0);
  return out;
}

}  // namespace
}  // namespace cuda

const Backend& cuda_backend() noexcept {
  static const cuda::CudaBackend backend;
  return backend;
}

}  // namespace penstock::device
