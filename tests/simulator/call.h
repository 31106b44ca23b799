#pragma once

#include <string>

#include "simulator/state.h"

namespace penstock::simulator {

enum class Need { kNothing, kStart, kContext };

/// What each entry point does first: counts itself, and is refused after fork, before cuInit, in a host function,
/// without a context (or in one that failed), and where a fault was asked for.
class Call {
 public:
  Call(const char* name, Need need);
  bool refused() const noexcept { return result_ != kSuccess; }
  CUresult result() const noexcept { return result_; }

 private:
  CUresult admit(const char* name, Need need) const;
  CUresult result_;
};

/// The sticky error of a context or its device. Needs the lock.
CUresult failure_of(const Context& context);
/// The fault asked for this name, once it is due; it counts down. Needs the lock.
CUresult due_fault(std::string_view name);

/// Remembers and prints that a rule of the driver was broken. Needs the lock.
void violation(std::string text);
/// Prints what is alive or was done wrong; how many lines. Needs the lock.
int audit();

/// The calling thread's contexts, the current one last.
std::vector<ContextPtr>& context_stack();
/// Null when there is none.
ContextPtr current_context();
/// The visible device `ordinal`, or null. Needs the lock.
bool is_device(CUdevice ordinal);

/// CUstreamCaptureMode of the calling thread.
int& capture_mode();
/// Set on threads that run a host function.
bool& in_host_function();

}  // namespace penstock::simulator
