#pragma once

// The driver's context of a device, shared with torch and every other library of the process. Calls of the driver are
// made within Current.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/driver.h"
#include "penstock/device.h"

namespace penstock::device::cuda {

/// A device's primary context, which all libraries of the process share: retained with the first use of the device and
/// released with the last thing that holds it. Thread-safe.
class Context {
 public:
  /// The one of device `index`, which must exist; retains it when it is not yet.
  static std::shared_ptr<Context> of(int index);
  /// Null when device `index` is not in use.
  static std::shared_ptr<Context> find(int index) noexcept;

  /// Those in use.
  static std::vector<std::shared_ptr<Context>> all();

  explicit Context(int index);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int index() const noexcept { return index_; }
  Device device() const noexcept { return {DeviceType::kCuda, index_}; }
  CUdevice handle() const noexcept { return handle_; }
  CUcontext context() const noexcept { return context_; }

  /// Throws what a failure of `call` means, which was made for this device.
  void check(CUresult result, std::string_view call) const { cuda::check(result, call, index_); }

  /// An event without timing, recycled. Callers have the context current.
  CUevent take_event();
  void give_back(CUevent event) noexcept;

  /// A kernel "module/entry" of kernel_modules(), its module loaded with the first; null when there is none of that
  /// name. Callers have the context current.
  CUfunction find_kernel(std::string_view name);

 private:
  CUmodule load_module(std::string_view name);

  const int index_;
  CUdevice handle_ = 0;
  CUcontext context_ = nullptr;
  std::mutex mutex_;
  std::vector<CUevent> idle_events_;
  std::mutex kernel_mutex_;  ///< of the maps; held while a driver compiles, which takes seconds
  std::map<std::string, CUmodule, std::less<>> modules_;
  std::map<std::string, CUfunction, std::less<>> kernels_;
};
using ContextPtr = std::shared_ptr<Context>;

/// While it lives, the calling thread's calls are none that a driver forbids, and that end the capture, while another
/// thread captures a graph: what they are about is no part of it.
class BesideCaptures {
 public:
  explicit BesideCaptures(const Driver& driver) noexcept;
  ~BesideCaptures();
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  const Driver& driver_;
  int mode_ = kCaptureRelaxed;
};

/// Makes a context the calling thread's current one while it lives, and what was current before again afterwards.
class Current {
 public:
  /// kDeviceFailed after fork.
  explicit Current(const Context& context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  std::optional<BesideCaptures> beside_captures_;
};

/// Runs `action(driver)` in the context where failures have nobody to go to, as in destructors: nothing happens where
/// the driver is gone.
template <class Action>
void quietly_in(const Context& context, Action&& action) noexcept {
  if (!usable()) return;
  const Driver& d = *find_driver();
  const BesideCaptures beside_captures(d);
  if (d.context_push(context.context()) != kSuccess) return;
  action(d);
  CUcontext popped = nullptr;
  d.context_pop(&popped);
}

}  // namespace penstock::device::cuda
