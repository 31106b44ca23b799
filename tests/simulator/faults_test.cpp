// Faults on demand, modules and kernels, stream-ordered memory.

#include <array>
#include <cstring>

#include "simulator/driver_fixture.h"

namespace penstock::simulator {
namespace {

using FaultsTest = SimulatorTest;

constexpr const char* kText = R"(.version 6.4
.target sm_52
.address_size 64

.visible .entry test_add(
	.param .u64 test_add_param_0,
	.param .align 8 .b8 test_add_param_1[16],
	.param .u32 test_add_param_2
)
{
	ret;
}
)";

CUresult allocate_bytes(std::size_t bytes) {
  CUdeviceptr device = 0;
  const CUresult result = call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &device, bytes);
  if (result == kSuccess) {
    EXPECT_EQ(call<CUdeviceptr>("cuMemFree_v2", device), kSuccess);
  }
  return result;
}

CUresult load_module(CUmodule* module, const char* text) {
  return call<CUmodule*, const void*, unsigned, int*, void**>("cuModuleLoadDataEx", module, text, 0, nullptr, nullptr);
}

TEST_F(FaultsTest, FailTheCallThatIsNamed) {
  fail("cuMemAlloc_v2", 2, kOutOfMemory);
  EXPECT_EQ(allocate_bytes(10), kSuccess);
  EXPECT_EQ(allocate_bytes(10), kOutOfMemory);
  EXPECT_EQ(allocate_bytes(10), kSuccess);
  fail("cuMemAlloc_v2", 0, kUnknown);
  EXPECT_EQ(allocate_bytes(10), kUnknown);
  EXPECT_EQ(allocate_bytes(10), kUnknown);
  EXPECT_EQ(entry_as<PenstockSimCalls>("penstockSimCalls")("cuMemAlloc_v2"), 5U);
}

TEST_F(FaultsTest, CapMemory) {
  entry_as<PenstockSimSetMemory>("penstockSimSetMemory")(1000);
  EXPECT_EQ(allocate_bytes(1000), kSuccess);
  EXPECT_EQ(allocate_bytes(1001), kOutOfMemory);
  const CUdeviceptr held = allocate(600);
  EXPECT_NE(held, 0U);
  EXPECT_EQ(allocate_bytes(401), kOutOfMemory);
  entry_as<PenstockSimSetMemory>("penstockSimSetMemory")(std::uint64_t{16} << 30);
}

TEST_F(FaultsTest, OfExecutionsFailTheContext) {
  set_mode(kPenstockSimLazy);
  const CUstream stream = make_stream();
  const CUdeviceptr device = allocate(64);
  fail("execution of cuMemsetD8Async", 1, kIllegalAddress);
  const auto fill = [&] {
    return call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", device, 1, 64, stream);
  };
  EXPECT_EQ(fill(), kSuccess);
  EXPECT_EQ(synchronize(stream), kIllegalAddress);
  EXPECT_EQ(fill(), kIllegalAddress);
  EXPECT_EQ(allocate_bytes(1), kIllegalAddress);
}

TEST_F(FaultsTest, LoseADevice) {
  entry_as<PenstockSimLose>("penstockSimLose")(0, kDeviceUnavailable);
  EXPECT_EQ(allocate_bytes(1), kDeviceUnavailable);
  entry_as<PenstockSimLose>("penstockSimLose")(0, kSuccess);
  EXPECT_EQ(allocate_bytes(1), kSuccess);
}

TEST_F(FaultsTest, RunKernelsOnTheBytesBehindAddresses) {
  struct Pair {
    const unsigned* from;
    std::uint64_t count;
  };
  entry_as<PenstockSimAddKernel>("penstockSimAddKernel")("test_add", [](const PenstockSimLaunch* launch) {
    auto* const to = *static_cast<unsigned* const*>(launch->arguments[0]);
    const auto& pair = *static_cast<const Pair*>(launch->arguments[1]);
    const unsigned value = *static_cast<const unsigned*>(launch->arguments[2]);
    for (std::uint64_t i = 0; i < pair.count; ++i) to[i] = pair.from[i] + value;
  });
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(load_module(&module, kText), kSuccess);
  EXPECT_EQ((call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "other")), kNotFound);
  ASSERT_EQ((call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, "test_add")), kSuccess);
  const CUstream stream = make_stream();
  CUdeviceptr to = allocate(16);
  const CUdeviceptr from = allocate(16);
  std::array<unsigned, 4> numbers = {1, 2, 3, 4};
  to_device(from, numbers.data(), 16, stream);
  Pair pair{reinterpret_cast<const unsigned*>(from), 4};
  unsigned value = 10;
  std::array<void*, 3> arguments = {&to, &pair, &value};
  using U = unsigned;
  ASSERT_EQ((call<CUfunction, U, U, U, U, U, U, U, CUstream, void**, void**>("cuLaunchKernel", function, 1, 1, 1, 32, 1,
                                                                             1, 0, stream, arguments.data(), nullptr)),
            kSuccess);
  to_host(numbers.data(), to, 16, stream);
  EXPECT_EQ(numbers, (std::array<unsigned, 4>{11, 12, 13, 14}));
  EXPECT_EQ(call<CUmodule>("cuModuleUnload", module), kSuccess);
}

TEST_F(FaultsTest, RefuseTextThatIsNewerThanTheDriver) {
  CUmodule module = nullptr;
  std::array<char, 200> log{};
  std::array<int, 2> options = {kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  const auto load = [&](const char* text) {
    return call<CUmodule*, const void*, unsigned, int*, void**>("cuModuleLoadDataEx", &module, text, 2, options.data(),
                                                                values.data());
  };
  EXPECT_EQ(load(".version 99.0\n.target sm_52\n"), kUnsupportedPtxVersion);
  EXPECT_GT(std::strlen(log.data()), 0U);
  EXPECT_EQ(load("not a kernel"), kInvalidPtx);
}

TEST_F(FaultsTest, FreeStreamOrderedMemoryInOrder) {
  set_mode(kPenstockSimLazy);
  const CUstream stream = make_stream();
  CUdeviceptr device = 0;
  ASSERT_EQ((call<CUdeviceptr*, std::size_t, CUstream>("cuMemAllocAsync", &device, 100, stream)), kSuccess);
  ASSERT_EQ((call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", device, 1, 100, stream)),
            kSuccess);
  ASSERT_EQ((call<CUdeviceptr, CUstream>("cuMemFreeAsync", device, stream)), kSuccess);
  EXPECT_EQ(statistics().device_bytes, 100U);
  EXPECT_EQ((call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", device, 1, 1, stream)),
            kInvalidValue);
  EXPECT_EQ(take_violations().size(), 1U);
  ASSERT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(statistics().device_bytes, 0U);
}

TEST_F(FaultsTest, FindAFreeThatDoesNotWaitForAnotherStream) {
  set_mode(kPenstockSimLazy);
  const CUstream owner = make_stream();
  const CUstream user = make_stream();
  const CUevent event = make_event();
  CUdeviceptr device = 0;
  ASSERT_EQ((call<CUdeviceptr*, std::size_t, CUstream>("cuMemAllocAsync", &device, 100, owner)), kSuccess);
  ASSERT_EQ((call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", device, 1, 100, user)),
            kSuccess);
  EXPECT_EQ((call<CUdeviceptr, CUstream>("cuMemFreeAsync", device, owner)), kInvalidValue);
  EXPECT_EQ(take_violations().size(), 1U);
  ASSERT_EQ((call<CUevent, CUstream>("cuEventRecord", event, user)), kSuccess);
  ASSERT_EQ((call<CUstream, CUevent, unsigned>("cuStreamWaitEvent", owner, event, 0)), kSuccess);
  EXPECT_EQ((call<CUdeviceptr, CUstream>("cuMemFreeAsync", device, owner)), kSuccess);
  ASSERT_EQ(synchronize(owner), kSuccess);
}

}  // namespace
}  // namespace penstock::simulator
