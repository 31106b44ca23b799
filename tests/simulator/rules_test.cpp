// What the simulator refuses or reports where a driver would let it pass, and how late it works.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "simulator/driver_fixture.h"
#include "simulator/engine_lock.h"

namespace penstock::simulator {
namespace {

constexpr std::size_t kBytes = 4096;
using RulesTest = SimulatorTest;

/// Runs under each mode and a few seeds.
class ModesTest : public SimulatorTest, public ::testing::WithParamInterface<std::pair<int, std::uint64_t>> {
 protected:
  void SetUp() override {
    SimulatorTest::SetUp();
    set_mode(GetParam().first, GetParam().second);
  }
};
INSTANTIATE_TEST_SUITE_P(All, ModesTest,
                         ::testing::Values(std::pair(kPenstockSimEager, 1), std::pair(kPenstockSimLazy, 1),
                                           std::pair(kPenstockSimDelay, 1), std::pair(kPenstockSimDelay, 2),
                                           std::pair(kPenstockSimReorder, 1), std::pair(kPenstockSimReorder, 2),
                                           std::pair(kPenstockSimReorder, 3)));

TEST_P(ModesTest, GiveTheSameBytesToProgramsThatWait) {
  const CUstream copies = make_stream();
  const CUstream reader = make_stream();
  const CUdeviceptr device = allocate(kBytes);
  std::array<CUevent, 2> filled = {make_event(), make_event()};
  std::array<std::byte*, 2> ring = {pin(kBytes), pin(kBytes)};
  std::byte* const back = pin(kBytes);
  for (int round = 0; round < 20; ++round) {
    const auto slot = static_cast<std::size_t>(round % 2);
    ASSERT_EQ(call<CUevent>("cuEventSynchronize", filled.at(slot)), kSuccess);
    std::memset(ring.at(slot), round, kBytes);
    to_device(device, ring.at(slot), kBytes, copies);
    ASSERT_EQ((call<CUevent, CUstream>("cuEventRecord", filled.at(slot), copies)), kSuccess);
    ASSERT_EQ((call<CUstream, CUevent, unsigned>("cuStreamWaitEvent", reader, filled.at(slot), 0)), kSuccess);
    to_host(back, device, kBytes, reader);
    ASSERT_EQ(synchronize(reader), kSuccess);
    EXPECT_EQ(std::to_integer<int>(back[kBytes - 1]), round);
  }
}

TEST_P(ModesTest, OrderTheLegacyStreamWithBlockingOnes) {
  const CUstream blocking = make_stream(0);
  const CUdeviceptr device = allocate(kBytes);
  std::array<unsigned char, kBytes> back{};
  for (unsigned char value = 1; value < 10; ++value) {
    ASSERT_EQ(
        (call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", device, value, kBytes, nullptr)),
        kSuccess);
    to_host(back.data(), device, kBytes, blocking);
    EXPECT_EQ(back.back(), value);
  }
}

TEST_P(ModesTest, GetToHostFunctionsThatNobodyWaitsFor) {
  std::atomic<bool> called{false};
  const CUhostFn function = [](void* data) { static_cast<std::atomic<bool>*>(data)->store(true); };
  const CUstream stream = make_stream();
  ASSERT_EQ((call<CUstream, CUhostFn, void*>("cuLaunchHostFunc", stream, function, &called)), kSuccess);
  while (!called.load()) std::this_thread::yield();
}

TEST_P(ModesTest, FinishTheWorkOfDestroyedStreams) {
  CUstream stream = nullptr;
  ASSERT_EQ((call<CUstream*, unsigned, int>("cuStreamCreateWithPriority", &stream, kStreamNonBlocking, 0)), kSuccess);
  CUdeviceptr device = 0;
  ASSERT_EQ((call<CUdeviceptr*, std::size_t, CUstream>("cuMemAllocAsync", &device, kBytes, stream)), kSuccess);
  ASSERT_EQ((call<CUdeviceptr, CUstream>("cuMemFreeAsync", device, stream)), kSuccess);
  EXPECT_EQ(call<CUstream>("cuStreamDestroy_v2", stream), kSuccess);
}

TEST_P(ModesTest, EndPollsOfEvents) {
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  const CUdeviceptr device = allocate(kBytes);
  to_device(device, pin(kBytes), kBytes, stream);
  ASSERT_EQ((call<CUevent, CUstream>("cuEventRecord", event, stream)), kSuccess);
  CUresult result = kNotReady;
  while (result == kNotReady) result = call<CUevent>("cuEventQuery", event);
  EXPECT_EQ(result, kSuccess);
}

TEST_F(RulesTest, LazyWorkWaitsForSomebodyWhoWaits) {
  set_mode(kPenstockSimLazy);
  const CUstream stream = make_stream();
  std::byte* const source = pin(kBytes);
  to_device(allocate(kBytes), source, kBytes, stream);
  EXPECT_EQ(call<CUstream>("cuStreamQuery", stream), kNotReady);
  EXPECT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(call<CUstream>("cuStreamQuery", stream), kSuccess);
}

TEST_F(RulesTest, FindsSourcesThatWereChangedTooEarly) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer finds it first";
#endif
  set_mode(kPenstockSimLazy);
  const CUstream stream = make_stream();
  std::byte* const source = pin(kBytes);
  const CUdeviceptr device = allocate(kBytes);
  to_device(device, source, kBytes, stream);
  std::memset(source, 7, kBytes);
  EXPECT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(take_violations().size(), 1U);
  std::array<unsigned char, kBytes> back{};
  to_host(back.data(), device, kBytes, stream);
  EXPECT_EQ(back[0], 7);
}

TEST_F(RulesTest, FindsAMissingWaitBetweenStreams) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer finds it first";
#endif
  set_mode(kPenstockSimLazy);
  const CUstream writer = make_stream();
  const CUstream reader = make_stream();
  const CUdeviceptr device = allocate(kBytes);
  to_device(device, pin(kBytes), kBytes, writer);
  std::array<unsigned char, kBytes> back{};
  EXPECT_EQ(
      (call<void*, CUdeviceptr, std::size_t, CUstream>("cuMemcpyDtoHAsync_v2", back.data(), device, kBytes, reader)),
      kLaunchFailed);
  EXPECT_EQ(take_violations().size(), 1U);
}

TEST_F(RulesTest, KnowsEachByteThatWasWritten) {
  const CUdeviceptr device = allocate(100);
  const CUdeviceptr copy = allocate(100);
  const CUstream stream = make_stream();
  std::array<std::byte, 100> host{};
  to_device(device, host.data(), 50, stream);
  ASSERT_EQ((call<CUdeviceptr, CUdeviceptr, std::size_t, CUstream>("cuMemcpyDtoDAsync_v2", copy + 20, device + 10, 60,
                                                                   stream)),
            kSuccess);
  to_host(host.data(), copy + 20, 40, stream);
  EXPECT_EQ(
      (call<void*, CUdeviceptr, std::size_t, CUstream>("cuMemcpyDtoHAsync_v2", host.data(), copy + 20, 41, stream)),
      kLaunchFailed);
  EXPECT_EQ(take_violations().size(), 1U);
}

TEST_F(RulesTest, KeepsMemoryThatIsInUse) {
  set_mode(kPenstockSimLazy);
  const CUstream stream = make_stream();
  const CUdeviceptr device = allocate(kBytes);
  std::byte* const source = pin(kBytes);
  to_device(device, source, kBytes, stream);
  EXPECT_EQ(call<CUdeviceptr>("cuMemFree_v2", device), kInvalidValue);
  EXPECT_EQ(call<void*>("cuMemFreeHost", source), kInvalidValue);
  EXPECT_EQ(take_violations().size(), 2U);
}

TEST_F(RulesTest, RefusesASecondFree) {
  CUdeviceptr device = 0;
  ASSERT_EQ((call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &device, kBytes)), kSuccess);
  EXPECT_EQ(call<CUdeviceptr>("cuMemFree_v2", device + 1), kInvalidValue);
  EXPECT_EQ(call<CUdeviceptr>("cuMemFree_v2", device), kSuccess);
  EXPECT_EQ(call<CUdeviceptr>("cuMemFree_v2", device), kInvalidValue);
  EXPECT_EQ(take_violations().size(), 2U);
}

TEST_F(RulesTest, RefusesRangesThatRunPastTheirEnd) {
  const CUdeviceptr device = allocate(kBytes);
  const auto fill = [&](CUdeviceptr at, std::size_t bytes) {
    return call<CUdeviceptr, unsigned char, std::size_t, CUstream>("cuMemsetD8Async", at, 1, bytes, nullptr);
  };
  EXPECT_EQ(fill(device, kBytes), kSuccess);
  EXPECT_EQ(fill(device + 1, kBytes), kInvalidValue);
  EXPECT_EQ(take_violations().size(), 1U);
  EXPECT_EQ(fill(device + kBytes, 1), kInvalidValue);
}

TEST_F(RulesTest, RefusesCallsOfHostFunctions) {
  const CUstream stream = make_stream();
  CUresult result = kSuccess;
  const CUhostFn function = [](void* data) {
    std::size_t bytes = 0;
    *static_cast<CUresult*>(data) = call<std::size_t*, CUdevice>("cuDeviceTotalMem_v2", &bytes, 0);
  };
  ASSERT_EQ((call<CUstream, CUhostFn, void*>("cuLaunchHostFunc", stream, function, &result)), kSuccess);
  ASSERT_EQ(synchronize(stream), kSuccess);
  EXPECT_EQ(result, kNotPermitted);
  EXPECT_EQ(take_violations().size(), 1U);
}

TEST_F(RulesTest, RefusesWorkWithoutAContext) {
  std::thread([] {
    CUdeviceptr device = 0;
    EXPECT_EQ((call<CUdeviceptr*, std::size_t>("cuMemAlloc_v2", &device, kBytes)), kInvalidContext);
  }).join();
}

TEST_F(RulesTest, GivesAddressesThatTheSystemCannotWriteTo) {
  const CUdeviceptr device = allocate(kBytes);
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(zeros, 0);
  EXPECT_EQ(::read(zeros, reinterpret_cast<void*>(device), 16), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(zeros);
}

TEST_F(RulesTest, CountsWhatIsAlive) {
  EXPECT_EQ(statistics().device_bytes, 0U);
  allocate(1000);
  pin(2000);
  make_stream();
  const PenstockSimStatistics now = statistics();
  EXPECT_EQ(now.contexts, 1U);
  EXPECT_EQ(now.streams, 1U);
  EXPECT_EQ(now.device_bytes, 1000U);
  EXPECT_EQ(now.pinned_bytes, 2000U);
}

}  // namespace
}  // namespace penstock::simulator
