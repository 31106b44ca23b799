#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulator/simulated_cufile.h"
#include "support/simulator.h"

namespace penstock::test {

/// A function that simulator/simulated_cufile.h declares; null where the library in use is another one.
template <class Function>
Function* cufile_function(const char* name) {
  const char* const chosen = std::getenv("PENSTOCK_LIBCUFILE");
  if (chosen == nullptr || *chosen == '\0') return nullptr;
  void* const library = ::dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

/// Tests that read by cuFile: with the simulated one for the simulated driver only.
class WithCufile : public WithSimulator {
 protected:
  void SetUp() override {
    WithSimulator::SetUp();
    if (IsSkipped()) return;
    auto* const reset = cufile_function<PenstockSimCufileReset>("penstockSimCufileReset");
    if (reset == nullptr) GTEST_SKIP() << "no simulated cuFile; PENSTOCK_LIBCUFILE names it";
    reset();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(cufile().violations, 0U);
    EXPECT_EQ(cufile().handles, 0U);
    cufile_function<PenstockSimCufileReset>("penstockSimCufileReset")();
  }

  static PenstockSimCufileStatistics cufile() {
    PenstockSimCufileStatistics out{};
    cufile_function<PenstockSimCufileGetStatistics>("penstockSimCufileGetStatistics")(&out);
    return out;
  }
  /// The `nth` read from now gives `result`.
  static void fail_read(std::uint64_t nth, std::int64_t result, int error = 0) {
    cufile_function<PenstockSimCufileFail>("penstockSimCufileFail")(nth, result, error);
  }
  static void at_each_read(void (*action)(void*), void* data) {
    cufile_function<PenstockSimCufileHook>("penstockSimCufileHook")(action, data);
  }
};

}  // namespace penstock::test
