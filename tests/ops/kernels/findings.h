#pragma once

#include <string>
#include <vector>

#include "ops/launcher.h"

namespace penstock::test {

/// What a check of kernels found wrong. Checks are run with kernels that are right, where nothing may be found, and
/// with mutants, where something must be.
class Findings {
 public:
  void expect(bool right, const std::string& what) {
    if (!right) all_.push_back(what);
  }
  const std::vector<std::string>& all() const noexcept { return all_; }

 private:
  std::vector<std::string> all_;
};

/// Compares kernels that `launcher` runs in host memory with the CPU's loops, bit by bit but for the bits of NaNs.
/// `threads`: how many threads a launch has; sizes around multiples of it are among those that are checked.
struct KernelCheck {
  const char* name;
  const char* kernels;  ///< the entries that it launches, with a space behind each
  void (*run)(ops::Launcher& launcher, std::int64_t threads, Findings& findings);
};

const std::vector<KernelCheck>& kernel_checks();

}  // namespace penstock::test
