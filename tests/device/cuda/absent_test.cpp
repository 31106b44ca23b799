// Machines without a usable driver, and processes that may not use theirs. The driver is found once a process, so each
// case that is about finding it runs in a process of its own: this program again, with another environment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "device/backend.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "penstock/stream.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock {
namespace {

using testing::HasSubstr;

/// What asking for cuda:0 says in a process with `environment`.
std::string refusal_with(const std::string& environment) {
  const test::Ended ended = test::run_again(environment, "CudaAbsent.DISABLED_Ask");
  EXPECT_EQ(ended.status, 0) << ended.output;
  return ended.output;
}

/// Runs in processes of its own only.
TEST(CudaAbsent, DISABLED_Ask) {
  EXPECT_FALSE(is_available());
  EXPECT_EQ(device_count(), 0);
  EXPECT_EQ(Device("cuda"), Device("cuda:0"));
  const auto error = test::error_of([] { Buffer::allocate(1, "cuda:0"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  std::printf("%s\n", error->what());
}

TEST(CudaAbsent, NoDriverIsSaidToBeAbsent) {
  const std::string said = refusal_with("PENSTOCK_LIBCUDA=/nowhere/libcuda.so.1");
  EXPECT_THAT(said, HasSubstr("cuda:0 requested, 0 visible"));
  EXPECT_THAT(said, HasSubstr("no NVIDIA driver: /nowhere/libcuda.so.1"));
}

TEST(CudaAbsent, ADriverWithoutWhatIsNeededIsTooOld) {
  EXPECT_THAT(refusal_with("PENSTOCK_LIBCUDA=libz.so.1"), HasSubstr("too old, it has no cuInit"));
}

TEST(CudaAbsent, TheMaskIsNamed) {
  EXPECT_THAT(refusal_with("PENSTOCK_LIBCUDA=/nowhere CUDA_VISIBLE_DEVICES="), HasSubstr("CUDA_VISIBLE_DEVICES=''"));
}

/// Drivers that are there and refuse, or show nothing.
class SimulatedAbsence : public test::WithSimulator {};

TEST_F(SimulatedAbsence, AStubIsSaidToBeOne) {
  EXPECT_THAT(refusal_with("PENSTOCK_SIM_STUB=1"), HasSubstr("the toolkit's stub, not a driver"));
}

TEST_F(SimulatedAbsence, AMaskThatHidesAllDevicesIsNamed) {
  const std::string said = refusal_with("CUDA_VISIBLE_DEVICES=");
  EXPECT_THAT(said, HasSubstr("cuda:0 requested, 0 visible, CUDA_VISIBLE_DEVICES=''"));
}

TEST_F(SimulatedAbsence, ADriverThatDoesNotStartGivesItsReason) {
  EXPECT_THAT(refusal_with("PENSTOCK_SIM_FAULTS=cuInit:*:999"), HasSubstr("cuInit gives 999 (CUDA_ERROR_UNKNOWN"));
  EXPECT_THAT(refusal_with("PENSTOCK_SIM_DEVICES=0"), HasSubstr("CUDA_ERROR_NO_DEVICE"));
}

TEST(CudaAbsent, DISABLED_AskForTheEighth) {
  EXPECT_EQ(device_count(), 2);
  const auto error = test::error_of([] { Buffer::allocate(1, "cuda:7"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  EXPECT_THAT(error->message(), HasSubstr("cuda:7 requested, 2 visible"));
}

TEST_F(SimulatedAbsence, SevenOfTwoIsNotThere) {
  const test::Ended ended =
      test::run_again("PENSTOCK_SIM_DEVICES=2 PENSTOCK_SIM_AUDIT=1", "CudaAbsent.DISABLED_AskForTheEighth");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

/// Kernels in a text that is newer than the driver: data moves, computing says why not.
TEST(CudaAbsent, DISABLED_UseWithoutKernels) {
  const Buffer there = Buffer::allocate(16, "cuda:0");
  const Stream stream = Stream::current(there.device());
  StreamAccess::queue(stream)->fill(there.data(), std::byte{1}, 16);
  stream.synchronize();
  const auto error = test::error_of([&] { device::backend_for(DeviceType::kCuda).has_kernel(0, "arithmetic/any"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error->message(), HasSubstr("use a newer driver, or the cpu"));
}

TEST_F(SimulatedAbsence, AnOldDriverMovesDataAndRefusesKernels) {
  // Refused as such; and for want of the compiler, which containers leave out, or of a program for the device.
  for (const char* how : {"PENSTOCK_SIM_JIT=0", "PENSTOCK_SIM_FAULTS=cuModuleLoadDataEx:*:221",
                          "PENSTOCK_SIM_FAULTS=cuModuleLoadDataEx:*:209"}) {
    const test::Ended ended =
        test::run_again(std::string(how) + " PENSTOCK_SIM_AUDIT=1", "CudaAbsent.DISABLED_UseWithoutKernels");
    EXPECT_EQ(ended.status, 0) << how << ": " << ended.output;
  }
}

class CudaFork : public test::WithDevice {};

TEST_F(CudaFork, AChildOfAProcessThatUsedItIsRefusedAndEndsCleanly) {
  const Buffer before = Buffer::allocate(1 << 16, device);
  const Stream stream(device);
  const Event event = stream.record();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto refused = [](auto call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code() == ErrorCode::kDeviceFailed && error.message().find("forked") != std::string::npos;
      }
      return false;
    };
    bool right = refused([&] { Buffer::allocate(16, device); });
    right = refused([&] { event.done(); }) && right;
    right = refused([&] { stream.synchronize(); }) && right;
    right = refused([&] { Stream{device}; }) && right;
    { const Buffer dropped = before.part(0, 10); }
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(Buffer::allocate(16, device));
}

}  // namespace
}  // namespace penstock
