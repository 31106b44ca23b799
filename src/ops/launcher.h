#pragma once

// Runs kernels of src/ops/kernels on the stream that is current, in order with what tensors were written by.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "device/queue.h"
#include "penstock/tensor.h"

namespace penstock::ops {

/// Runs kernels on the device that the tensors are on; where they run in order, one behind the other.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// Runs `kernel`, "module/entry", for `count` >= 1 indices. `parameters` (src/ops/kernels/parameters.h) are read
  /// before this returns; the memory of `reads` and `writes` is kept until the kernel is done.
  virtual void launch(std::string_view kernel, const void* parameters, std::uint64_t count,
                      std::span<const Tensor> reads, std::span<const Tensor> writes) = 0;
  /// device::Queue::multiplies.
  virtual bool multiplies(DType::Code /*type*/) { return false; }
  /// Starts products whose operands lie in `reads` and whose results in `writes`, kept as launch() keeps them. False
  /// where one of them is refused, and none of the results counts.
  virtual bool multiply(std::span<const device::MatrixProduct> /*products*/, std::span<const Tensor> /*reads*/,
                        std::span<const Tensor> /*writes*/) {
    return false;
  }
};

/// Launches on the current stream of `device`, which is none of the host's, after earlier writes to what is read or
/// written. Launching is kUnsupported where the device has no kernels.
std::unique_ptr<Launcher> launcher_for(Device device);

}  // namespace penstock::ops
