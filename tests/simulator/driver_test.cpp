// What a driver of version 590 was seen to do; runs on a real one, too.

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "simulator/driver_fixture.h"

namespace penstock::simulator {
namespace {

std::vector<unsigned char> pattern(std::size_t bytes) {
  std::vector<unsigned char> made(bytes);
  std::iota(made.begin(), made.end(), static_cast<unsigned char>(1));
  return made;
}

TEST_F(DriverTest, RefusesDevicesThatAreNotThere) {
  CUdevice device = 0;
  EXPECT_EQ((call<CUdevice*, int>("cuDeviceGet", &device, 99)), kInvalidDevice);
  EXPECT_EQ((call<CUdevice*, int>("cuDeviceGet", &device, -1)), kInvalidDevice);
}

TEST_F(DriverTest, RefusesToRegisterTwice) {
  std::vector<std::byte> memory(std::size_t{3} << 12);
  std::byte* const page = memory.data();
  const auto add = [](void* at, std::size_t bytes) {
    return call<void*, std::size_t, unsigned>("cuMemHostRegister_v2", at, bytes, 0);
  };
  EXPECT_EQ(add(page, memory.size()), kSuccess);
  EXPECT_EQ(add(page + 4096, 4096), kHostRegistered);
  EXPECT_EQ(call<void*>("cuMemHostUnregister", page), kSuccess);
  EXPECT_EQ(call<void*>("cuMemHostUnregister", page), kHostNotRegistered);
}

TEST_F(DriverTest, AllocatesNoPinnedBytes) { pin(0); }

TEST_F(DriverTest, RefusesToAllocateNoDeviceBytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ((call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &address, 0)), kInvalidValue);
}

TEST_F(DriverTest, KeepsFreedMemoryInAPoolUntilItIsTrimmed) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  CUmemPoolProps properties{};
  properties.allocation_type = 1;
  properties.location = {.type = 1, .id = 0};
  CUmemoryPool pool = nullptr;
  ASSERT_EQ((call<CUmemoryPool*, const CUmemPoolProps*>("cuMemPoolCreate", &pool, &properties)), kSuccess);
  std::uint64_t all = UINT64_MAX;
  ASSERT_EQ((call<CUmemoryPool, int, void*>("cuMemPoolSetAttribute", pool, kPoolReleaseThreshold, &all)), kSuccess);
  const auto value = [pool](int attribute) {
    std::uint64_t out = 0;
    EXPECT_EQ((call<CUmemoryPool, int, void*>("cuMemPoolGetAttribute", pool, attribute, &out)), kSuccess);
    return out;
  };
  const auto free_bytes = [] {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ((call<std::size_t*, std::size_t*>("cuMemGetInfo_v2", &free, &total)), kSuccess);
    return free;
  };
  const std::size_t before = free_bytes();
  const CUstream stream = make_stream();
  CUdeviceptr address = 0;
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_EQ((call<CUdeviceptr*, std::size_t, CUmemoryPool, CUstream>("cuMemAllocFromPoolAsync", &address, kBytes,
                                                                       pool, stream)),
              kSuccess);
    ASSERT_EQ((call<CUdeviceptr, CUstream>("cuMemFreeAsync", address, stream)), kSuccess);
    ASSERT_EQ(synchronize(stream), kSuccess);
    EXPECT_EQ(value(kPoolUsed), 0U);
    EXPECT_GE(value(kPoolReserved), kBytes);
    EXPECT_GE(value(kPoolReservedHigh), kBytes);
    EXPECT_LE(free_bytes(), before - kBytes);
    EXPECT_GT(free_bytes(), before - 2 * kBytes);
  }
  ASSERT_EQ((call<CUmemoryPool, std::size_t>("cuMemPoolTrimTo", pool, 0)), kSuccess);
  EXPECT_EQ(value(kPoolReserved), 0U);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ((call<CUmemoryPool>("cuMemPoolDestroy", pool)), kSuccess);
}

TEST_F(DriverTest, CopiesThereAndBack) {
  const auto bytes = pattern(100'001);
  const CUstream stream = make_stream();
  const CUdeviceptr first = allocate(bytes.size());
  const CUdeviceptr second = allocate(bytes.size());
  std::byte* const source = pin(bytes.size());
  std::byte* const target = pin(bytes.size());
  std::memcpy(source, bytes.data(), bytes.size());
  to_device(first, source, bytes.size(), stream);
  ASSERT_EQ((call<CUdeviceptr, CUdeviceptr, std::size_t, CUstream>("cuMemcpyDtoDAsync_v2", second, first, bytes.size(),
                                                                   stream)),
            kSuccess);
  to_host(target, second, bytes.size(), stream);
  ASSERT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(std::memcmp(target, bytes.data(), bytes.size()), 0);
}

TEST_F(DriverTest, StagesPageableMemoryBeforeItReturns) {
  auto bytes = pattern(5000);
  const auto kept = bytes;
  const CUstream stream = make_stream();
  const CUdeviceptr device = allocate(bytes.size());
  to_device(device, bytes.data(), bytes.size(), stream);
  std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  to_host(bytes.data(), device, bytes.size(), stream);
  ASSERT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(bytes, kept);
}

TEST_F(DriverTest, FillsBytes) {
  const CUstream stream = make_stream();
  const CUdeviceptr device = allocate(64);
  ASSERT_EQ((call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", device, 0x5A, 64, stream)),
            kSuccess);
  std::array<unsigned char, 64> back{};
  to_host(back.data(), device, back.size(), stream);
  ASSERT_EQ(synchronize(stream), kSuccess);
  EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](unsigned char b) { return b == 0x5A; }));
}

TEST_F(DriverTest, OrdersStreamsByEvents) {
  const CUstream writer = make_stream();
  const CUstream reader = make_stream();
  const CUevent event = make_event();
  EXPECT_EQ(call<CUevent>("cuEventQuery", event), kSuccess);  // never recorded
  const auto bytes = pattern(4096);
  const CUdeviceptr device = allocate(bytes.size());
  std::byte* const source = pin(bytes.size());
  std::byte* const target = pin(bytes.size());
  std::memcpy(source, bytes.data(), bytes.size());
  to_device(device, source, bytes.size(), writer);
  ASSERT_EQ((call<CUevent, CUstream>("cuEventRecord", event, writer)), kSuccess);
  ASSERT_EQ((call<CUstream, CUevent, unsigned>("cuStreamWaitEvent", reader, event, 0)), kSuccess);
  to_host(target, device, bytes.size(), reader);
  ASSERT_EQ(synchronize(reader), kSuccess);
  EXPECT_EQ(call<CUevent>("cuEventQuery", event), kSuccess);
  EXPECT_EQ(std::memcmp(target, bytes.data(), bytes.size()), 0);
}

TEST_F(DriverTest, KnowsWhatAnAddressIs) {
  const CUdeviceptr device = allocate(1000);
  std::byte* const host = pin(1000);
  unsigned type = 0;
  const auto ask = [&](CUdeviceptr address) {
    return call<void*, int, CUdeviceptr>("cuPointerGetAttribute", &type, kPointerMemoryType, address);
  };
  EXPECT_EQ(ask(device + 10), kSuccess);
  EXPECT_EQ(type, kMemoryDevice);
  EXPECT_EQ(ask(reinterpret_cast<CUdeviceptr>(host) + 10), kSuccess);
  EXPECT_EQ(type, kMemoryHost);
  EXPECT_EQ(ask(reinterpret_cast<CUdeviceptr>(&type)), kInvalidValue);
}

TEST_F(DriverTest, RunsHostFunctionsInOrder) {
  const CUstream stream = make_stream();
  std::vector<int> seen;
  const CUhostFn add = [](void* data) {
    auto& numbers = *static_cast<std::vector<int>*>(data);
    numbers.push_back(static_cast<int>(numbers.size()));
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ((call<CUstream, CUhostFn, void*>("cuLaunchHostFunc", stream, add, &seen)), kSuccess);
  }
  ASSERT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST_F(DriverTest, NamesErrors) {
  const char* name = nullptr;
  EXPECT_EQ((call<CUresult, const char**>("cuGetErrorName", 2, &name)), kSuccess);
  EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ((call<CUresult, const char**>("cuGetErrorName", 123456, &name)), kInvalidValue);
}

}  // namespace
}  // namespace penstock::simulator
