// Contexts: who makes one, and what is current afterwards. Asked in processes that have none yet.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "device/cuda/driver_api.h"
#include "device/queue.h"
#include "penstock/buffer.h"
#include "penstock/stream.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock {
namespace {

class CudaContexts : public test::WithSimulator {
 protected:
  /// Of the calling thread, as other libraries see it.
  static device::cuda::CUcontext current() {
    device::cuda::CUcontext out = nullptr;
    const auto get = test::simulator_function<device::cuda::CUresult(device::cuda::CUcontext*)>("cuCtxGetCurrent");
    EXPECT_EQ(get(&out), device::cuda::kSuccess);
    return out;
  }
  static void expect_in_a_process(const char* name) {
    const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1", std::string("CudaContexts.DISABLED_") + name);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_NE(ended.output.find("[  PASSED  ] 1 test."), std::string::npos) << ended.output;
  }
};

TEST_F(CudaContexts, DISABLED_Questions) {
  std::array<int, 4> memory{};
  EXPECT_TRUE(is_available());
  EXPECT_EQ(device_count(), 2);
  EXPECT_FALSE(Buffer::wrap(memory.data(), sizeof memory, nullptr).is_pinned());
  EXPECT_EQ(current_device(), device);
  EXPECT_EQ(statistics().contexts, 0U);
}
TEST_F(CudaContexts, AreNotMadeByQuestions) { expect_in_a_process("Questions"); }

TEST_F(CudaContexts, DISABLED_OfOneDevice) {
  const Device second(DeviceType::kCuda, 1);
  EXPECT_EQ(current(), nullptr);
  const Buffer there = Buffer::allocate(1024, second);
  const Stream stream(second);
  StreamAccess::queue(stream)->fill(there.data(), std::byte{1}, there.size());
  there.record_use(stream, Buffer::Access::kWrite);
  stream.synchronize();
  const Buffer pinned = Buffer::allocate_pinned(1024);
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_EQ(current(), nullptr);
  // Page-locked memory of all devices needed no other one's.
  EXPECT_EQ(statistics().contexts, 1U);
}
TEST_F(CudaContexts, AreMadeOfDevicesInUseOnlyAndNeverLeftCurrent) { expect_in_a_process("OfOneDevice"); }

TEST_F(CudaContexts, AreUsedBesideCapturesOfGraphs) {
  const auto captures = test::simulator_function<PenstockSimCapture>("penstockSimCapture");
  const auto exchange = test::simulator_function<int(int*)>("cuThreadExchangeStreamCaptureMode");
  const std::uint64_t before = statistics().violations;
  captures(1);
  {
    const Stream stream(device);
    const Buffer pinned = Buffer::allocate_pinned(std::size_t{3} << 20);
    const Buffer buffer = Buffer::allocate(std::size_t{3} << 20, device);
    const Event event = stream.record();
    (void)event.done();
    event.synchronize();
    stream.synchronize();
    synchronize(device);
    empty_cache(device);
  }
  empty_cache(device);
  int mode = 1;
  exchange(&mode);
  EXPECT_EQ(mode, 0) << "the caller's own mode is as it was";
  exchange(&mode);
  captures(0);
  EXPECT_EQ(statistics().violations, before);
}

}  // namespace
}  // namespace penstock
