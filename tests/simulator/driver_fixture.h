#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/driver_types.h"
#include "simulator/simulator.h"

namespace penstock::simulator {

/// The library under test: PENSTOCK_LIBCUDA, which may name a real driver, otherwise the simulator of this build.
void* library();
/// A function of it by name; the test program ends without it.
void* entry(const char* name);
template <class F>
F* entry_as(const char* name) {
  return reinterpret_cast<F*>(entry(name));
}
/// Whether the library is the simulator.
bool is_simulated();

/// Calls an entry point: call<unsigned>("cuInit", 0U). The argument types are the parameters' own.
template <class... Parameters>
CUresult call(const char* name, std::type_identity_t<Parameters>... arguments) {
  return entry_as<CUresult(Parameters...)>(name)(arguments...);
}

/// Starts the driver, makes the first device's primary context current, and checks that each test leaves nothing.
class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  CUstream make_stream(unsigned flags = kStreamNonBlocking);
  CUevent make_event();
  CUdeviceptr allocate(std::size_t bytes);
  std::byte* pin(std::size_t bytes);
  CUresult synchronize(CUstream stream) { return call<CUstream>("cuStreamSynchronize", stream); }
  void to_device(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream);
  void to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  /// The violations so far, which the test expected; they are forgotten.
  std::vector<std::string> take_violations();

 private:
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::vector<CUdeviceptr> memory_;
  std::vector<void*> pinned_;
};

/// The rules that only the simulator checks.
class SimulatorTest : public DriverTest {
 protected:
  void SetUp() override;
  void set_mode(int mode, std::uint64_t seed = 1) { entry_as<PenstockSimSetMode>("penstockSimSetMode")(mode, seed); }
  void fail(const char* name, std::uint64_t nth, int code) {
    entry_as<PenstockSimFail>("penstockSimFail")(name, nth, code);
  }
  PenstockSimStatistics statistics();
};

}  // namespace penstock::simulator
