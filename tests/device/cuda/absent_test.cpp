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
