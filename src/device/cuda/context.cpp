// We use the primary context of a device, because memory and streams of other libraries (PyTorch's for example) live
// there and can be shared. Events are recycled, because making one takes longer than recording it. Kernels are loaded
// when the first of a module is asked for, because the driver compiles their text then, which takes seconds.

#include "device/cuda/context.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/format.h"
#include "core/text.h"
#include "device/cuda/kernels.h"
#include "penstock/error.h"

namespace penstock::device::cuda {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<std::shared_ptr<Context>> contexts;
};

Table& table() {
  static Table contexts;
  return contexts;
}

std::shared_ptr<Context> found(const Table& contexts, int index) {
  const auto at = std::find_if(contexts.contexts.begin(), contexts.contexts.end(),
                               [index](const auto& context) { return context->index() == index; });
  return at != contexts.contexts.end() ? *at : nullptr;
}

/// Throws where the driver does not take the kernels: some drivers say so only when one of them is asked for.
void require_not_refused(Device device, CUresult result, std::string_view kernels, std::string_view log) {
  constexpr std::array refusals = {kInvalidImage,        kNoBinaryForGpu, kInvalidPtx,
                                   kJitCompilerNotFound, kUnsupportedPtx, kJitDisabled};
  if (std::ranges::find(refusals, result) == refusals.end()) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("the driver of {} refuses the kernels of {} (error {}{}{}): use a newer driver, or the cpu",
                           device.to_string(), core::quoted(kernels), result, log.empty() ? "" : ": ", log));
}

}  // namespace

std::shared_ptr<Context> Context::of(int index) {
  require_not_forked();
  Table& contexts = table();
  const std::scoped_lock lock(contexts.mutex);
  std::shared_ptr<Context> context = found(contexts, index);
  if (!context) context = contexts.contexts.emplace_back(std::make_shared<Context>(index));
  return context;
}

std::shared_ptr<Context> Context::find(int index) noexcept {
  Table& contexts = table();
  const std::scoped_lock lock(contexts.mutex);
  return found(contexts, index);
}

std::vector<std::shared_ptr<Context>> Context::all() {
  Table& contexts = table();
  const std::scoped_lock lock(contexts.mutex);
  return contexts.contexts;
}

Context::Context(int index) : index_(index) {
  const Driver& d = driver();
  check(d.device_get(&handle_, index), "cuDeviceGet");
  check(d.context_retain(&context_, handle_), "cuDevicePrimaryCtxRetain");
}

Context::~Context() {
  quietly_in(*this, [this](const Driver& d) {
    for (CUevent event : idle_events_) d.event_destroy(event);
    for (const auto& [name, module] : modules_) d.module_unload(module);
  });
  if (usable()) find_driver()->context_release(handle_);
}

CUevent Context::take_event() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_events_.empty()) {
      const CUevent event = idle_events_.back();
      idle_events_.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  check(driver().event_create(&event, kEventDisableTiming), "cuEventCreate");
  return event;
}

void Context::give_back(CUevent event) noexcept {
  const std::scoped_lock lock(mutex_);
  idle_events_.push_back(event);
}

CUmodule Context::load_module(std::string_view name) {
  const auto loaded = modules_.find(name);
  if (loaded != modules_.end()) return loaded->second;
  const auto rows = kernel_modules();
  const auto row = std::find_if(rows.begin(), rows.end(), [name](const auto& r) { return r.name == name; });
  if (row == rows.end()) return nullptr;

  std::array<char, 4096> log{};
  std::array<int, 2> options = {kJitErrorLogBuffer, kJitErrorLogBytes};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver takes numbers in the place of pointers
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(std::uintptr_t{log.size()})};
  CUmodule module = nullptr;
  const CUresult result = driver().module_load(&module, row->ptx, 2, options.data(), values.data());
  require_not_refused(device(), result, name, log.data());
  check(result, "cuModuleLoadDataEx");
  modules_.emplace(name, module);
  return module;
}

CUfunction Context::find_kernel(std::string_view name) {
  const std::scoped_lock lock(kernel_mutex_);
  const auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return nullptr;
  const CUmodule module = load_module(name.substr(0, slash));
  if (module == nullptr) return nullptr;
  CUfunction function = nullptr;
  const CUresult result = driver().module_function(&function, module, std::string(name.substr(slash + 1)).c_str());
  if (result == kNotFound) return nullptr;
  require_not_refused(device(), result, name, "");
  check(result, "cuModuleGetFunction");
  kernels_.emplace(name, function);
  return function;
}

BesideCaptures::BesideCaptures(const Driver& driver) noexcept : driver_(driver) {
  if (driver_.exchange_capture_mode != nullptr) driver_.exchange_capture_mode(&mode_);
}

BesideCaptures::~BesideCaptures() {
  if (driver_.exchange_capture_mode != nullptr) driver_.exchange_capture_mode(&mode_);
}

Current::Current(const Context& context) {
  require_not_forked();
  beside_captures_.emplace(driver());
  context.check(driver().context_push(context.context()), "cuCtxPushCurrent");
}

Current::~Current() {
  CUcontext popped = nullptr;
  driver().context_pop(&popped);
}

}  // namespace penstock::device::cuda
