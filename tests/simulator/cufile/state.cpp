#include "simulator/cufile/state.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace penstock::simulator::cufile {
namespace {

Mode mode_of(std::string_view name) {
  if (name.empty() || name == "direct") return Mode::kDirect;
  if (name == "compat") return Mode::kCompat;
  if (name == "peer") return Mode::kPeer;
  if (name == "closed") return Mode::kClosed;
  if (name == "open") return Mode::kOpen;
  if (name == "no_handles") return Mode::kNoHandles;
  if (name == "no_pools") return Mode::kNoPools;
  std::fprintf(stderr, "simulated cuFile: PENSTOCK_SIM_CUFILE is unknown\n");
  std::abort();
}

std::string_view setting(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Runs before the driver's own audit, as the library is opened after the driver.
__attribute__((destructor)) void audit_at_exit() {
  State& s = state();
  if (!s.audit || s.process != ::getpid()) return;
  if (!s.files.empty()) std::fprintf(stderr, "simulated cuFile: alive at the audit: %zu handles\n", s.files.size());
  if (s.files.empty() && s.counts.violations == 0) return;
  std::fflush(nullptr);
  ::_exit(97);
}

}  // namespace

State& state() {
  static State& s = []() -> State& {
    State& made = *new State;
    made.mode = mode_of(setting("PENSTOCK_SIM_CUFILE"));
    made.audit = setting("PENSTOCK_SIM_AUDIT") == "1";
    return made;
  }();
  return s;
}

void violation(const std::string& text) {
  ++state().counts.violations;
  std::fprintf(stderr, "simulated cuFile: violation: %s\n", text.c_str());
}

void enter(const char* name) {
  State& s = state();
  ++s.counts.calls;
  if (s.process != 0 && s.process != ::getpid()) violation(std::string(name) + " in a process that was forked");
}

}  // namespace penstock::simulator::cufile

using penstock::simulator::cufile::state;

PENSTOCK_SIM_CUFILE_API void penstockSimCufileReset() {
  const std::scoped_lock lock(state().mutex);
  state().fault = {};
  state().hook = nullptr;
  state().counts = {};
}

PENSTOCK_SIM_CUFILE_API void penstockSimCufileGetStatistics(PenstockSimCufileStatistics* statistics) {
  const std::scoped_lock lock(state().mutex);
  *statistics = state().counts;
  statistics->handles = state().files.size();
}

PENSTOCK_SIM_CUFILE_API void penstockSimCufileFail(std::uint64_t nth, std::int64_t result, int error) {
  const std::scoped_lock lock(state().mutex);
  state().fault = {nth, true, result, error};
}

PENSTOCK_SIM_CUFILE_API void penstockSimCufileHook(void (*action)(void*), void* data) {
  const std::scoped_lock lock(state().mutex);
  state().hook = action;
  state().hook_data = data;
}
