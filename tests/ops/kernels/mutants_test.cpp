// Kernels with one wrong line (mutants.txt): the checks that find nothing in the right ones must find something in
// each, by a value that differs, a place outside of the arrays, threads that meet, or an end that does not come.

#include "ops/kernels/mutants.h"

#include <gtest/gtest.h>

#include <string>

#include "ops/kernels/findings.h"
#include "ops/kernels/launchers.h"

namespace penstock::simulator::ptx {
namespace {

constexpr Launch kLaunch{{3}, {7}, Order::kShuffled};

/// What `check` finds with the mutant in the place of its kernel, or "".
std::string finding_of(const test::KernelCheck& check, const Kernel& mutant) {
  test::Findings findings;
  test::PtxLauncher launcher(kLaunch, &mutant);
  try {
    check.run(launcher, static_cast<std::int64_t>(kLaunch.grid.count() * kLaunch.block.count()), findings);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return findings.all().empty() ? "" : findings.all().front();
}

std::string finding_of(const Mutant& mutant) {
  for (const test::KernelCheck& check : test::kernel_checks()) {
    if (std::string(check.kernels).find(std::string(mutant.kernel.name) + " ") == std::string::npos) continue;
    if (std::string finding = finding_of(check, mutant.kernel); !finding.empty()) return finding;
  }
  return "";
}

TEST(Mutants, AreAllNoticed) {
  EXPECT_FALSE(kMutants.empty());
  for (const Mutant& mutant : kMutants) EXPECT_NE(finding_of(mutant), "") << mutant.what;
}

}  // namespace
}  // namespace penstock::simulator::ptx
