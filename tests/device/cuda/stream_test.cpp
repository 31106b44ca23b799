#include "penstock/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device/backend.h"
#include "penstock/error.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock {
namespace {

class CudaStream : public test::WithDevice {};

TEST_F(CudaStream, TheDefaultOneIsCurrentUntilAGuardSaysOtherwise) {
  EXPECT_EQ(Stream::current(device), Stream::default_of(device));
  EXPECT_EQ(Stream::default_of(device).native(), nullptr);
  const Stream mine(device, -1);
  EXPECT_EQ(mine.device(), device);
  EXPECT_NE(mine.native(), nullptr);
  {
    const StreamGuard guard(mine);
    EXPECT_EQ(Stream::current(device), mine);
    std::thread([&] { EXPECT_EQ(Stream::current(device), Stream::default_of(device)); }).join();
  }
  EXPECT_EQ(Stream::current(device), Stream::default_of(device));
}

TEST_F(CudaStream, WorkOfOneWaitsForWorkOfAnother) {
  const Stream first(device);
  const Stream second(device);
  const Buffer bytes = Buffer::allocate(4096, device);
  bytes.order_after_writes(first);
  StreamAccess::queue(first)->fill(bytes.data(), std::byte{1}, 4096);
  second.wait(first);
  StreamAccess::queue(second)->fill(bytes.data(), std::byte{2}, 2048);
  const Event event = second.record();
  event.synchronize();
  EXPECT_TRUE(event.done());
  EXPECT_TRUE(second.done());
  bytes.record_use(second, Buffer::Access::kWrite);

  const Buffer host = Buffer::allocate(4096);
  const std::array range{device::CopyRange{host.data(), bytes.data(), 4096}};
  StreamAccess::queue(second)->copy(range, device::Direction::kDeviceToHost);
  second.synchronize();
  EXPECT_EQ(host.data()[0], std::byte{2});
  EXPECT_EQ(host.data()[4095], std::byte{1});
}

TEST_F(CudaStream, OfAnotherLibraryIsWrappedAndNotDestroyed) {
  const Stream theirs(device);
  {
    const Stream wrapped = Stream::wrap(device, theirs.native());
    EXPECT_EQ(wrapped, theirs);
    const StreamGuard guard(wrapped);
    const Buffer buffer = Buffer::allocate(1 << 16, device);
    StreamAccess::queue(wrapped)->fill(buffer.data(), std::byte{3}, buffer.size());
    buffer.record_use(wrapped, Buffer::Access::kWrite);
  }
  theirs.synchronize();
  EXPECT_EQ(Stream::wrap(device, nullptr), Stream::default_of(device));
  EXPECT_EQ(Stream::wrap(device, reinterpret_cast<void*>(std::uintptr_t{1})), Stream::default_of(device));
}

TEST_F(CudaStream, OfAnotherDeviceIsRefused) {
  if (device_count() < 2) GTEST_SKIP() << "one device only";
  const Device second(DeviceType::kCuda, 1);
  const Stream theirs(second);
  const auto error = test::error_of([&] { Stream::wrap(device, theirs.native()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), testing::HasSubstr("is not one of cuda:0"));
  EXPECT_EQ(Stream::wrap(second, theirs.native()), theirs);
}

TEST_F(CudaStream, ActionsRunAfterWork) {
  const Stream stream(device);
  std::atomic<int> calls{0};
  StreamAccess::queue(stream)->on_complete([&calls] { ++calls; });
  stream.synchronize();
  EXPECT_EQ(calls, 1);
}

TEST_F(CudaStream, AnUnknownKernelIsUnsupported) {
  const Stream stream(device);
  for (const char* name : {"nothing", "no_module/entry", ""}) {
    EXPECT_FALSE(device::backend_for(device.type).has_kernel(0, name));
    EXPECT_EQ(test::code_of([&] { StreamAccess::queue(stream)->launch({.kernel = name}); }), ErrorCode::kUnsupported);
  }
}

class SimulatedCudaStream : public test::WithSimulator {};

TEST_F(SimulatedCudaStream, ErrorsNameTheDeviceAndTheCall) {
  const Device last(DeviceType::kCuda, device_count() - 1);
  const Stream stream(last);
  const auto fail = test::simulator_function<PenstockSimFail>("penstockSimFail");
  fail("cuStreamSynchronize", 1, 1);
  const auto error = test::error_of([&] { stream.synchronize(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kDeviceFailed);
  EXPECT_THAT(error->message(),
              testing::StartsWith("the CUDA driver's cuStreamSynchronize for " + last.to_string() + " gives "));
}

/// Run where a driver says no more than by this call that it does not take the kernels.
TEST_F(SimulatedCudaStream, DISABLED_RefusedKernels) {
  const Stream stream(device);
  const auto error =
      test::error_of([&] { StreamAccess::queue(stream)->launch({.kernel = "arithmetic/penstock_binary"}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), testing::HasSubstr("the driver of cuda:0 refuses the kernels of"));
}

TEST_F(SimulatedCudaStream, KernelsMayBeRefusedWhenTheyAreLookedUp) {
  const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1 PENSTOCK_SIM_FAULTS=cuModuleGetFunction:*:222",
                                            "SimulatedCudaStream.DISABLED_RefusedKernels");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST_F(CudaStream, CurrentDevicesArePerThread) {
  if (device_count() < 2) GTEST_SKIP() << "one device only";
  const Device second(DeviceType::kCuda, 1);
  {
    const DeviceGuard guard(second);
    EXPECT_EQ(Device("cuda"), second);
    std::thread([] { EXPECT_EQ(Device("cuda"), Device("cuda:0")); }).join();
    const StreamGuard stream(Stream::default_of(device));
    EXPECT_EQ(current_device(), device);
  }
  EXPECT_EQ(Device("cuda").index, 0);
}

TEST_F(CudaStream, PropertiesAreThoseOfTheDriver) {
  const DeviceProperties properties = device_properties(device);
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GT(properties.total_bytes, 0U);
  EXPECT_GE(properties.driver_version, 11000);
  EXPECT_FALSE(properties.unified_memory);
  EXPECT_EQ(test::code_of([] { device_properties(Device(DeviceType::kCuda, 77)); }), ErrorCode::kNoDevice);
}

}  // namespace
}  // namespace penstock
