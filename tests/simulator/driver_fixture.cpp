#include "simulator/driver_fixture.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace penstock::simulator {

void* library() {
  static void* const kLibrary = [] {
    const char* const chosen = std::getenv("PENSTOCK_LIBCUDA");
    return ::dlopen(chosen != nullptr ? chosen : PENSTOCK_SIMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);
  }();
  return kLibrary;
}

void* entry(const char* name) {
  void* const found = library() == nullptr ? nullptr : ::dlsym(library(), name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "there is no %s\n", name);
  std::abort();
}

bool is_simulated() { return ::dlsym(library(), "penstockSimReset") != nullptr; }

void DriverTest::SetUp() {
  const CUresult started = call<unsigned>("cuInit", 0);
  ASSERT_EQ(started, kSuccess);
  CUcontext context = nullptr;
  ASSERT_EQ((call<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, 0)), kSuccess);
  ASSERT_EQ(call<CUcontext>("cuCtxSetCurrent", context), kSuccess);
}

void DriverTest::TearDown() {
  if (is_simulated()) {
    const char* const violation = entry_as<PenstockSimViolation>("penstockSimViolation")(0);
    EXPECT_EQ(violation, nullptr) << violation;
    entry_as<PenstockSimReset>("penstockSimReset")();
  }
  for (CUstream stream : streams_) {
    EXPECT_EQ(synchronize(stream), kSuccess);
    EXPECT_EQ(call<CUstream>("cuStreamDestroy_v2", stream), kSuccess);
  }
  for (CUevent event : events_) EXPECT_EQ(call<CUevent>("cuEventDestroy_v2", event), kSuccess);
  for (CUdeviceptr address : memory_) EXPECT_EQ(call<CUdeviceptr>("cuMemFree_v2", address), kSuccess);
  for (void* address : pinned_) EXPECT_EQ(call<void*>("cuMemFreeHost", address), kSuccess);
  EXPECT_EQ(call<CUcontext>("cuCtxSetCurrent", nullptr), kSuccess);
  EXPECT_EQ(call<CUdevice>("cuDevicePrimaryCtxRelease_v2", 0), kSuccess);
  if (!is_simulated()) return;
  EXPECT_EQ(entry_as<PenstockSimAudit>("penstockSimAudit")(), 0);
  entry_as<PenstockSimSetMode>("penstockSimSetMode")(kPenstockSimEager, 1);
  entry_as<PenstockSimReset>("penstockSimReset")();
}

CUstream DriverTest::make_stream(unsigned flags) {
  CUstream stream = nullptr;
  EXPECT_EQ((call<CUstream*, unsigned, int>("cuStreamCreateWithPriority", &stream, flags, 0)), kSuccess);
  return streams_.emplace_back(stream);
}

CUevent DriverTest::make_event() {
  CUevent event = nullptr;
  EXPECT_EQ((call<CUevent*, unsigned>("cuEventCreate", &event, kEventDisableTiming)), kSuccess);
  return events_.emplace_back(event);
}

CUdeviceptr DriverTest::allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ((call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &address, bytes)), kSuccess);
  return memory_.emplace_back(address);
}

std::byte* DriverTest::pin(std::size_t bytes) {
  void* address = nullptr;
  EXPECT_EQ((call<void**, std::size_t, unsigned>("cuMemHostAlloc", &address, bytes, 0)), kSuccess);
  pinned_.push_back(address);
  return static_cast<std::byte*>(address);
}

void DriverTest::to_device(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  ASSERT_EQ((call<CUdeviceptr, const void*, std::size_t, CUstream>("cuMemcpyHtoDAsync_v2", to, from, bytes, stream)),
            kSuccess);
}

void DriverTest::to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ASSERT_EQ((call<void*, CUdeviceptr, std::size_t, CUstream>("cuMemcpyDtoHAsync_v2", to, from, bytes, stream)),
            kSuccess);
}

std::vector<std::string> DriverTest::take_violations() {
  std::vector<std::string> texts;
  const auto violation = entry_as<PenstockSimViolation>("penstockSimViolation");
  for (std::size_t i = 0; violation(i) != nullptr; ++i) texts.emplace_back(violation(i));
  entry_as<PenstockSimReset>("penstockSimReset")();
  return texts;
}

void SimulatorTest::SetUp() {
  if (!is_simulated()) GTEST_SKIP() << "a rule of the simulator's";
  DriverTest::SetUp();
}

PenstockSimStatistics SimulatorTest::statistics() {
  PenstockSimStatistics found{};
  entry_as<PenstockSimGetStatistics>("penstockSimGetStatistics")(&found);
  return found;
}

}  // namespace penstock::simulator
