#pragma once

// Launchers that run kernels at once, in host memory.

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "ops/launcher.h"
#include "simulator/ptx/kernels.h"
#include "support/kernel_parameters.h"

namespace penstock::test {

/// The memory from a tensor's first element to its last; none where it has no elements.
inline simulator::ptx::Range reach_of(const Tensor& tensor, bool writable) {
  if (tensor.numel() == 0) return {};
  std::size_t last = 0;
  for (std::size_t d = 0; d < tensor.rank(); ++d) {
    last += static_cast<std::size_t>((tensor.shape()[d] - 1) * tensor.strides()[d]);
  }
  return {tensor.data(), (last + 1) * tensor.dtype().itemsize(), writable};
}

/// Runs the translated PTX text, with so many blocks of so many threads however many indices there are. Its kernels may
/// touch what the tensors that they are given reach, to the byte. A fault arrives as simulator::ptx::Fault.
class PtxLauncher final : public ops::Launcher {
 public:
  explicit PtxLauncher(const simulator::ptx::Launch& launch, const simulator::ptx::Kernel* mutant = nullptr)
      : launch_(launch), mutant_(mutant) {}

  void launch(std::string_view kernel, const void* parameters, std::uint64_t count, std::span<const Tensor> reads,
              std::span<const Tensor> writes) override {
    kernel.remove_prefix(kernel.find('/') + 1);
    const auto* const found =
        mutant_ != nullptr && mutant_->name == kernel ? mutant_ : simulator::ptx::find_kernel(kernel);
    const KernelParameters* const known = find_parameters(kernel);
    if (count == 0 || found == nullptr || known == nullptr || found->parameter_bytes != known->bytes) {
      throw std::logic_error("a launch that cannot be: " + std::string(kernel));
    }
    std::vector<simulator::ptx::Range> memory;
    for (const Tensor& tensor : writes) memory.push_back(reach_of(tensor, true));
    for (const Tensor& tensor : reads) memory.push_back(reach_of(tensor, false));
    const std::span block(static_cast<const std::byte*>(parameters), known->bytes);
    simulator::ptx::run(*found, launch_, block, memory);
  }

 private:
  simulator::ptx::Launch launch_;
  const simulator::ptx::Kernel* mutant_;
};

}  // namespace penstock::test
