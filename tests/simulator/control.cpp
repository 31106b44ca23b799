// The simulator's own interface, and cuGetProcAddress.

#include <dlfcn.h>

#include <algorithm>
#include <type_traits>

#include "simulator/call.h"
#include "simulator/engine.h"

namespace penstock::simulator {
namespace {

void count_live(PenstockSimStatistics& counts) {
  const State& s = state();
  counts.contexts = static_cast<std::uint64_t>(std::count_if(
      s.contexts.begin(), s.contexts.end(), [](const auto& c) { return c != nullptr && c->references > 0; }));
  counts.streams = s.streams.size();
  counts.events = s.events.size();
  counts.modules = s.modules.size();
  for (const auto& [handle, pool] : s.pools) counts.pools += pool->is_default ? 0 : 1;
  counts.device_allocations = s.memory.size();
  for (const auto& [address, allocation] : s.memory) counts.device_bytes += allocation->bytes;
  counts.pinned_allocations = s.pinned.size();
  for (const auto& [address, pinned] : s.pinned) counts.pinned_bytes += pinned->bytes;
}

void* find_entry(const char* symbol) {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&state), &own) == 0) return nullptr;
  void* const library = ::dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* entry = ::dlsym(library, (std::string(symbol) + "_v2").c_str());
  if (entry == nullptr) entry = ::dlsym(library, symbol);
  ::dlclose(library);
  return entry;
}

}  // namespace

PENSTOCK_SIM_API CUresult cuGetProcAddress_v2(const char* symbol, void** function, [[maybe_unused]] int version,
                                              [[maybe_unused]] std::uint64_t flags, int* status) {
  if (symbol == nullptr || function == nullptr) return kInvalidValue;
  *function = find_entry(symbol);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? CUresult{kNotFound} : CUresult{kSuccess};
}

PENSTOCK_SIM_API void penstockSimSetMode(int mode, std::uint64_t seed) {
  const Lock lock;
  state().settings.mode = mode;
  state().settings.random.seed(seed);
}

PENSTOCK_SIM_API void penstockSimFail(const char* name, std::uint64_t nth, int code) {
  const Lock lock;
  state().faults[name] = {nth, code};
}

PENSTOCK_SIM_API void penstockSimCapture(int captures) {
  const Lock lock;
  state().captures = captures != 0;
}

PENSTOCK_SIM_API void penstockSimLose(int device, int code) {
  ContextPtr context;
  {
    const Lock lock;
    state().lost.at(static_cast<std::size_t>(device)) = code;
    state().changed.notify_all();
    context = state().contexts.at(static_cast<std::size_t>(device));
  }
  // What it was given is over: it uses no host memory any more.
  if (code != kSuccess && context != nullptr) wait_for_all(*context);
}

PENSTOCK_SIM_API void penstockSimSetSpeed(std::uint64_t bytes_per_second) {
  const Lock lock;
  state().settings.speed = bytes_per_second;
}

PENSTOCK_SIM_API void penstockSimSetMemory(std::uint64_t bytes) {
  const Lock lock;
  state().settings.memory = bytes;
}

PENSTOCK_SIM_API void penstockSimReset() {
  const Lock lock;
  State& s = state();
  s.counts = {};
  s.calls.clear();
  s.faults.clear();
  s.violations.clear();
  s.lost.fill(kSuccess);
  for (const ContextPtr& context : s.contexts) {
    if (context != nullptr) context->error = kSuccess;
  }
}

PENSTOCK_SIM_API void penstockSimGetStatistics(PenstockSimStatistics* statistics) {
  const Lock lock;
  *statistics = state().counts;
  count_live(*statistics);
}

PENSTOCK_SIM_API std::uint64_t penstockSimCalls(const char* name) {
  const Lock lock;
  return find(state().calls, name);
}

PENSTOCK_SIM_API const char* penstockSimViolation(std::size_t index) {
  const Lock lock;
  const auto& violations = state().violations;
  return index < violations.size() ? violations[index].c_str() : nullptr;
}

PENSTOCK_SIM_API int penstockSimAudit() {
  wait_for_closed();
  const Lock lock;
  return audit();
}

PENSTOCK_SIM_API void penstockSimReport(const char* text) {
  const Lock lock;
  violation(text);
}

PENSTOCK_SIM_API void penstockSimAddKernel(const char* name, PenstockSimKernel* kernel) {
  const Lock lock;
  state().kernels[name] = kernel;
}

// Tests find the functions by name and trust the header for their types.
template <class Declared, class Defined>
constexpr bool kIs = std::is_same_v<Declared, Defined>;
static_assert(kIs<PenstockSimSetMode, decltype(penstockSimSetMode)> && kIs<PenstockSimFail, decltype(penstockSimFail)>);
static_assert(kIs<PenstockSimLose, decltype(penstockSimLose)> && kIs<PenstockSimReset, decltype(penstockSimReset)>);
static_assert(kIs<PenstockSimCapture, decltype(penstockSimCapture)>);
static_assert(kIs<PenstockSimSetSpeed, decltype(penstockSimSetSpeed)>);
static_assert(kIs<PenstockSimSetMemory, decltype(penstockSimSetMemory)>);
static_assert(kIs<PenstockSimGetStatistics, decltype(penstockSimGetStatistics)>);
static_assert(kIs<PenstockSimCalls, decltype(penstockSimCalls)> && kIs<PenstockSimAudit, decltype(penstockSimAudit)>);
static_assert(kIs<PenstockSimViolation, decltype(penstockSimViolation)>);
static_assert(kIs<PenstockSimReport, decltype(penstockSimReport)>);
static_assert(kIs<PenstockSimAddKernel, decltype(penstockSimAddKernel)>);

}  // namespace penstock::simulator
