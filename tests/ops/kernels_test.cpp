// The device kernels against the CPU's loops, launched by the code that launches them on devices: their PTX text in
// several shapes of launches and orders of threads, and their sources compiled for the host.

#include "ops/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ops/device_ops.h"
#include "ops/kernels/findings.h"
#include "ops/kernels/launchers.h"
#include "penstock/ops.h"
#include "support/errors.h"
#include "support/host_kernels.h"

namespace penstock::ops {
namespace {

using simulator::ptx::Launch;
using simulator::ptx::Order;

/// Runs the sources, as so many threads, the last one first. What it shows beyond the PTX text is undefined behaviour
/// of the sources, by sanitizers: the text has the compiler's choice of what that does.
class SourceLauncher final : public Launcher {
 public:
  static constexpr std::uint64_t kThreads = 37;

  void launch(std::string_view kernel, const void* parameters, std::uint64_t count, std::span<const Tensor>,
              std::span<const Tensor>) override {
    ASSERT_GT(count, 0U) << kernel;
    kernel.remove_prefix(kernel.find('/') + 1);
    const auto* found = std::find_if(test::kHostKernels.begin(), test::kHostKernels.end(),
                                     [kernel](const test::HostKernel& known) { return known.name == kernel; });
    ASSERT_NE(found, test::kHostKernels.end()) << kernel;
    for (std::uint64_t thread = kThreads; thread-- > 0;) found->run(parameters, thread, kThreads);
  }
};

void expect_nothing_found(const test::KernelCheck& check, Launcher& launcher, std::uint64_t threads) {
  test::Findings findings;
  check.run(launcher, static_cast<std::int64_t>(threads), findings);
  for (const std::string& finding : findings.all()) ADD_FAILURE() << check.name << ": " << finding;
}

TEST(KernelSources, ComputeWhatTheCpuComputes) {
  SourceLauncher launcher;
  for (const test::KernelCheck& check : test::kernel_checks()) {
    expect_nothing_found(check, launcher, SourceLauncher::kThreads);
  }
}

class KernelTexts : public testing::TestWithParam<Launch> {};

TEST_P(KernelTexts, ComputeWhatTheCpuComputes) {
  test::PtxLauncher launcher(GetParam());
  for (const test::KernelCheck& check : test::kernel_checks()) {
    expect_nothing_found(check, launcher, GetParam().grid.count() * GetParam().block.count());
  }
}

std::string launch_name(const testing::TestParamInfo<Launch>& info) {
  constexpr const char* kOrders[] = {"forward", "backward", "shuffled"};
  const Launch& launch = info.param;
  return std::to_string(launch.grid.x) + "_blocks_of_" + std::to_string(launch.block.x) + "_" +
         kOrders[static_cast<int>(launch.order)];
}

INSTANTIATE_TEST_SUITE_P(Launches, KernelTexts,
                         testing::Values(Launch{{1}, {1}, Order::kForward}, Launch{{1}, {32}, Order::kBackward},
                                         Launch{{3}, {7}, Order::kShuffled}, Launch{{5}, {64}, Order::kShuffled},
                                         Launch{{2}, {256}, Order::kBackward}, Launch{{17}, {1}, Order::kForward}),
                         launch_name);

TEST(KernelTexts, HaveTheParameterBlocksThatAreLaunched) {
  std::size_t entries = 0;
  for (const simulator::ptx::Translation* translation : simulator::ptx::translations()) {
    for (const simulator::ptx::Kernel& kernel : translation->kernels) {
      const test::KernelParameters* const known = test::find_parameters(kernel.name);
      ASSERT_NE(known, nullptr) << kernel.name;
      EXPECT_EQ(kernel.parameter_bytes, known->bytes) << kernel.name;
      ++entries;
    }
  }
  EXPECT_EQ(entries, test::kKernelParameters.size());
}

TEST(Kernels, TooManyDimensionsAreRefused) {
  SourceLauncher launcher;
  Shape shape;
  Strides strides;
  std::int64_t stride = 1 << 20;
  for (int d = 0; d < 10; ++d, stride /= 4) {
    shape.push_back(2);
    strides.push_back(stride);
  }
  const Tensor x(Buffer::allocate(std::size_t{1} << 22), DType::uint8, shape, strides);
  const Side side{x, DType::Code::kUInt8};
  EXPECT_EQ(test::code_of([&] { unary_on_device(launcher, UnaryOp::kNegate, side, DType::uint8, DType::uint8); }),
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::ops
