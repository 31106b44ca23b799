// What a process sees that starts the driver: each case is a process of its own.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "simulator/driver_fixture.h"
#include "simulator/engine_lock.h"

namespace penstock::simulator {
namespace {

/// A case runs in a new copy of the program, which has not called the driver yet, and ends with a number.
class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_simulated()) GTEST_SKIP() << "a rule of the simulator's";
    ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  static void expect(int status, int (*body)()) {
    EXPECT_EXIT(std::exit(body()), ::testing::ExitedWithCode(status), "");
  }
};

constexpr int kAuditFailed = 97;

void set(const char* name, const char* value) { ::setenv(name, value, 1); }
CUresult start() { return call<unsigned>("cuInit", 0); }

int count_devices() {
  int found = -1;
  if (start() != kSuccess) return 50;
  call<int*>("cuDeviceGetCount", &found);
  return found;
}

CUresult retain() {
  CUcontext context = nullptr;
  return call<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, 0);
}

/// The driver's start, with the first device's context as the current one.
void enter() {
  CUcontext context = nullptr;
  start();
  call<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, 0);
  call<CUcontext>("cuCtxSetCurrent", context);
}

TEST_F(ProcessTest, RefusesCallsBeforeTheStart) {
  expect(kNotInitialized, [] {
    int found = 0;
    return call<int*>("cuDeviceGetCount", &found);
  });
}

TEST_F(ProcessTest, HasAsManyDevicesAsWanted) {
  expect(8, [] {
    set("PENSTOCK_SIM_DEVICES", "8");
    return count_devices();
  });
  expect(kNoDevice, [] {
    set("PENSTOCK_SIM_DEVICES", "0");
    return start();
  });
}

TEST_F(ProcessTest, ReadsVisibleDevices) {
  expect(2, [] {
    set("PENSTOCK_SIM_DEVICES", "4");
    set("CUDA_VISIBLE_DEVICES", "3,1,9,0");
    return count_devices();
  });
  expect(kNoDevice, [] {
    set("CUDA_VISIBLE_DEVICES", "");
    return start();
  });
}

TEST_F(ProcessTest, IsAStubOrAnOldDriverWhenWanted) {
  expect(kStubLibrary, [] {
    set("PENSTOCK_SIM_STUB", "1");
    return start();
  });
  expect(0, [] {
    set("PENSTOCK_SIM_DRIVER", "11040");
    int version = 0;
    call<int*>("cuDriverGetVersion", &version);
    return version == 11040 ? 0 : 1;
  });
}

TEST_F(ProcessTest, FailsCallsNamedByTheEnvironment) {
  expect(kNoDevice, [] {
    set("PENSTOCK_SIM_FAULTS", "cuDeviceGetCount:*:2,cuDevicePrimaryCtxRetain:2:100");
    int found = 0;
    if (start() != kSuccess || call<int*>("cuDeviceGetCount", &found) != kOutOfMemory) return 50;
    return retain() != kSuccess ? 51 : retain();
  });
}

TEST_F(ProcessTest, RefusesKernelsWhenWanted) {
  expect(kJitDisabled, [] {
    set("PENSTOCK_SIM_JIT", "0");
    CUmodule module = nullptr;
    enter();
    return call<CUmodule*, const void*>("cuModuleLoadData", &module, ".version 6.4\n.target sm_52\n");
  });
}

TEST_F(ProcessTest, AuditsWhatIsLeftAtExit) {
  expect(kAuditFailed, [] {
    set("PENSTOCK_SIM_AUDIT", "1");
    start();
    retain();
    return 0;
  });
  expect(0, [] {
    set("PENSTOCK_SIM_AUDIT", "1");
    start();
    retain();
    return call<CUdevice>("cuDevicePrimaryCtxRelease_v2", 0);
  });
}

/// A byte that went to the device from pinned memory and came back.
int byte_there_and_back() {
  CUdeviceptr device = 0;
  void* pinned = nullptr;
  enter();
  call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &device, 64);
  call<void**, std::size_t, unsigned>("cuMemHostAlloc", &pinned, 64, 0);
  auto* const byte = static_cast<unsigned char*>(pinned);
  *byte = 7;
  call<CUdeviceptr, const void*, std::size_t>("cuMemcpyHtoD_v2", device, pinned, 64);
  *byte = 9;
  call<void*, CUdeviceptr, std::size_t>("cuMemcpyDtoH_v2", pinned, device, 64);
  return *byte;
}

TEST_F(ProcessTest, LeavesCopiesToTheDeviceOutWhenAsked) {
  expect(7, byte_there_and_back);
  constexpr int kFresh = 0xA5;  // what the simulator fills new memory with
  expect(kFresh, [] {
    set("PENSTOCK_SIM_COPIES", "0");
    return byte_there_and_back();
  });
}

TEST_F(ProcessTest, RefusesForkedProcesses) {
  expect(kAuditFailed, [] {
    set("PENSTOCK_SIM_AUDIT", "1");
    start();
    const pid_t child = ::fork();
    if (child == 0) std::exit(start());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 50;
  });
}

TEST_F(ProcessTest, FaultsWhenTheHostReadsADeviceAddress) {
  const auto read = [] {
    CUdeviceptr device = 0;
    enter();
    call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &device, 64);
    return static_cast<int>(*reinterpret_cast<volatile unsigned char*>(device));
  };
  EXPECT_DEATH(std::exit(read()), "");
}

#if defined(__SANITIZE_THREAD__)
TEST_F(ProcessTest, LetsThreadSanitizerSeeASourceChangedTooEarly) {
  const auto race = [] {
    set("PENSTOCK_SIM_MODE", "delay");
    CUstream stream = nullptr;
    CUdeviceptr device = 0;
    void* source = nullptr;
    enter();
    call<CUstream*, unsigned, int>("cuStreamCreateWithPriority", &stream, kStreamNonBlocking, 0);
    call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &device, 64);
    call<void**, std::size_t, unsigned>("cuMemHostAlloc", &source, 64, 0);
    call<CUdeviceptr, const void*, std::size_t, CUstream>("cuMemcpyHtoDAsync_v2", device, source, 64, stream);
    *static_cast<int*>(source) = 0;
    return call<CUstream>("cuStreamSynchronize", stream);
  };
  EXPECT_DEATH(std::exit(race()), "data race");
}
#endif

TEST_F(ProcessTest, OldLibraryHasNoPools) {
  void* const old = ::dlopen(PENSTOCK_SIMULATED_OLD_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(old, nullptr);
  EXPECT_NE(::dlsym(old, "cuMemAlloc_v2"), nullptr);
  EXPECT_EQ(::dlsym(old, "cuMemAllocAsync"), nullptr);
}

}  // namespace
}  // namespace penstock::simulator
