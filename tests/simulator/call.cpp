#include "simulator/call.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "simulator/engine.h"

namespace penstock::simulator {
namespace {

std::atomic<bool> used_after_fork{false};

// The lock may be held for ever by a thread that the fork left behind.
CUresult refuse_child(const char* name) {
  used_after_fork.store(true);
  std::fprintf(stderr, "simulated CUDA: %s in a process forked after cuInit\n", name);
  return kNotInitialized;
}

int line(const char* what, std::uint64_t count) {
  if (count == 0) return 0;
  std::fprintf(stderr, "simulated CUDA: alive at the audit: %llu %s\n", static_cast<unsigned long long>(count), what);
  return 1;
}

std::uint64_t live_contexts(const State& s) {
  std::uint64_t count = 0;
  for (const ContextPtr& context : s.contexts) count += context != nullptr && context->references > 0 ? 1 : 0;
  return count;
}

// After the destructors of everything that used the library, which is why it is not a C++ static.
__attribute__((destructor)) void audit_at_exit() {
  State& s = state();
  if (!s.settings.audit) return;
  bool wrong = used_after_fork.load();
  if (!s.forked.load()) {
    wait_for_closed();
    const Lock lock;
    wrong = audit() > 0;
  }
  if (!wrong) return;
  std::fflush(nullptr);
  ::_exit(97);
}

/// What may not be done beside a capture (cuThreadExchangeStreamCaptureMode), as far as anybody calls it.
bool is_unsafe(std::string_view name) {
  constexpr auto kUnsafe = std::to_array<std::string_view>(
      {"cuCtxSynchronize", "cuEventQuery", "cuEventSynchronize", "cuMemAlloc_v2", "cuMemFreeHost", "cuMemFree_v2",
       "cuMemHostAlloc", "cuMemHostRegister_v2", "cuMemHostUnregister", "cuModuleLoadDataEx", "cuStreamQuery",
       "cuStreamSynchronize"});
  return std::find(kUnsafe.begin(), kUnsafe.end(), name) != kUnsafe.end();
}

}  // namespace

Call::Call(const char* name, Need need) : result_(admit(name, need)) {}

CUresult Call::admit(const char* name, Need need) const {
  State& s = state();
  if (s.forked.load()) return refuse_child(name);
  const Lock lock;
  ++s.counts.calls;
  ++s.calls[name];
  if (in_host_function() && need != Need::kNothing) {
    violation(std::string(name) + " called by a host function");
    return kNotPermitted;
  }
  if (s.captures && capture_mode() != kCaptureRelaxed && is_unsafe(name)) {
    violation(std::string(name) + " while a graph is captured");
    return kCaptureUnsupported;
  }
  if (const CUresult fault = due_fault(name); fault != kSuccess) return fault;
  if (need != Need::kNothing && !s.initialised.load()) return kNotInitialized;
  if (need != Need::kContext) return kSuccess;
  const ContextPtr context = current_context();
  if (context == nullptr || context->references == 0) return kInvalidContext;
  return failure_of(*context);
}

CUresult failure_of(const Context& context) {
  const CUresult lost = state().lost.at(static_cast<std::size_t>(context.device));
  return lost != kSuccess ? lost : context.error;
}

CUresult due_fault(std::string_view name) {
  auto& faults = state().faults;
  const auto found = faults.find(name);
  if (found == faults.end()) return kSuccess;
  if (found->second.countdown > 1) {
    --found->second.countdown;
    return kSuccess;
  }
  const CUresult code = found->second.code;
  if (found->second.countdown == 1) faults.erase(found);
  return code;
}

void violation(std::string text) {
  State& s = state();
  std::fprintf(stderr, "simulated CUDA: violation: %s\n", text.c_str());
  ++s.counts.violations;
  s.violations.push_back(std::move(text));
}

int audit() {
  const State& s = state();
  int lines = line("contexts", live_contexts(s)) + line("streams", s.streams.size()) + line("events", s.events.size());
  lines += line("device allocations", s.memory.size()) + line("pinned ranges", s.pinned.size());
  lines += line("modules", s.modules.size());
  for (const auto& [handle, pool] : s.pools) lines += pool->is_default ? 0 : line("memory pool", 1);
  for (const std::string& text : s.violations) {
    std::fprintf(stderr, "simulated CUDA: violation: %s\n", text.c_str());
    ++lines;
  }
  return lines;
}

std::vector<ContextPtr>& context_stack() {
  // Static objects call the driver when the first thread's own objects are gone.
  static thread_local bool gone = false;
  struct Owner {
    std::vector<ContextPtr> stack;
    ~Owner() { gone = true; }
  };
  static thread_local Owner owner;
  static auto* const late = new std::vector<ContextPtr>();
  return gone ? *late : owner.stack;
}

ContextPtr current_context() { return context_stack().empty() ? nullptr : context_stack().back(); }

bool is_device(CUdevice ordinal) { return ordinal >= 0 && static_cast<std::size_t>(ordinal) < state().visible.size(); }

int& capture_mode() {
  static thread_local int mode = 0;
  return mode;
}

bool& in_host_function() {
  static thread_local bool inside = false;
  return inside;
}

}  // namespace penstock::simulator
