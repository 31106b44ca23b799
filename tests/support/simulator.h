#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulator/simulator.h"
#include "support/devices.h"

namespace penstock::test {

/// A function that simulator/simulator.h declares, of the driver in use; null where that is not the simulator.
template <class Function>
Function* simulator_function(const char* name) {
  const char* const chosen = std::getenv("PENSTOCK_LIBCUDA");
  void* const library = chosen == nullptr ? nullptr : ::dlopen(chosen, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* const found = reinterpret_cast<Function*>(::dlsym(library, name));
  ::dlclose(library);
  return found;
}

/// Tests that count what the driver was told, or have it fail: on the simulated one only.
class WithSimulator : public WithDevice {
 protected:
  void SetUp() override {
    WithDevice::SetUp();
    if (IsSkipped()) return;
    if (simulator_function<PenstockSimReset>("penstockSimReset") == nullptr) GTEST_SKIP() << "a real driver";
  }

  static PenstockSimStatistics statistics() {
    PenstockSimStatistics out{};
    simulator_function<PenstockSimGetStatistics>("penstockSimGetStatistics")(&out);
    return out;
  }
  static std::uint64_t calls_of(const char* entry_point) {
    return simulator_function<PenstockSimCalls>("penstockSimCalls")(entry_point);
  }
};

}  // namespace penstock::test
