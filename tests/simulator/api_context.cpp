// Primary contexts and each thread's stack of them.

#include <utility>

#include "simulator/call.h"
#include "simulator/engine.h"

namespace penstock::simulator {
namespace {

ContextPtr context_of(CUcontext handle) {
  for (const ContextPtr& context : state().contexts) {
    if (context != nullptr && context->handle == handle && context->references > 0) return context;
  }
  return nullptr;
}

// A driver takes everything of a context down with it; here it is a mistake of the program's.
void check_empty(const Context& context) {
  const State& s = state();
  const auto here = [&](const auto& map) {
    std::uint64_t count = 0;
    for (const auto& [key, object] : map) count += object->context.get() == &context ? 1 : 0;
    return count;
  };
  const std::pair<const char*, std::uint64_t> kinds[] = {{"device allocations", here(s.memory)},
                                                         {"streams", here(s.streams)},
                                                         {"events", here(s.events)},
                                                         {"modules", here(s.modules)}};
  for (const auto& [what, count] : kinds) {
    if (count > 0) violation("a context released with " + std::to_string(count) + " " + what);
  }
}

}  // namespace

PENSTOCK_SIM_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Call call("cuDevicePrimaryCtxRetain", Need::kStart);
  if (call.refused()) return call.result();
  if (context == nullptr) return kInvalidValue;
  const Lock lock;
  State& s = state();
  if (!is_device(device)) return kInvalidDevice;
  const auto index = static_cast<std::size_t>(device);
  if (s.lost.at(index) != kSuccess) return s.lost.at(index);
  ContextPtr& primary = s.contexts.at(index);
  if (primary == nullptr) {
    primary = std::make_shared<Context>(Context{.handle = new_handle<CUcontext>(), .device = device});
  }
  ++primary->references;
  *context = primary->handle;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  const Call call("cuDevicePrimaryCtxRelease_v2", Need::kStart);
  if (call.refused()) return call.result();
  const auto index = static_cast<std::size_t>(device);
  ContextPtr context;
  {
    const Lock lock;
    if (!is_device(device)) return kInvalidDevice;
    context = state().contexts.at(index);
    if (context == nullptr || context->references == 0) return kInvalidContext;
    if (context->references > 1) {
      --context->references;
      return kSuccess;
    }
  }
  wait_for_all(*context);
  const Lock lock;
  check_empty(*context);
  context->references = 0;
  State& s = state();
  s.contexts.at(index) = nullptr;
  if (s.legacy_streams.at(index) != nullptr) close(std::exchange(s.legacy_streams.at(index), nullptr));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  const Call call("cuDevicePrimaryCtxGetState", Need::kStart);
  if (call.refused()) return call.result();
  if (flags == nullptr || active == nullptr) return kInvalidValue;
  const Lock lock;
  if (!is_device(device)) return kInvalidDevice;
  const ContextPtr& context = state().contexts.at(static_cast<std::size_t>(device));
  *flags = context == nullptr ? 0 : context->flags;
  *active = context != nullptr && context->references > 0 ? 1 : 0;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  const Call call("cuCtxPushCurrent_v2", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  ContextPtr context = context_of(handle);
  if (context == nullptr) return kInvalidContext;
  context_stack().push_back(std::move(context));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
  const Call call("cuCtxPopCurrent_v2", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  if (context_stack().empty()) return kInvalidContext;
  if (handle != nullptr) *handle = context_stack().back()->handle;
  context_stack().pop_back();
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuCtxSetCurrent(CUcontext handle) {
  const Call call("cuCtxSetCurrent", Need::kStart);
  if (call.refused()) return call.result();
  const Lock lock;
  auto& stack = context_stack();
  ContextPtr context = context_of(handle);
  if (handle != nullptr && context == nullptr) return kInvalidContext;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(std::move(context));
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuCtxGetCurrent(CUcontext* handle) {
  const Call call("cuCtxGetCurrent", Need::kStart);
  if (call.refused()) return call.result();
  if (handle == nullptr) return kInvalidValue;
  const Lock lock;
  const ContextPtr context = current_context();
  *handle = context == nullptr ? nullptr : context->handle;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuCtxGetDevice(CUdevice* device) {
  const Call call("cuCtxGetDevice", Need::kStart);
  if (call.refused()) return call.result();
  if (device == nullptr) return kInvalidValue;
  const Lock lock;
  const ContextPtr context = current_context();
  if (context == nullptr) return kInvalidContext;
  *device = context->device;
  return kSuccess;
}

PENSTOCK_SIM_API CUresult cuCtxSynchronize() {
  const Call call("cuCtxSynchronize", Need::kContext);
  if (call.refused()) return call.result();
  return wait_for_all(*current_context());
}

}  // namespace penstock::simulator
