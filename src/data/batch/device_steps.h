#pragma once

// The part of a batch's transforms that the device does (data/transform/device_split.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/collate/batch_plan.h"
#include "data/sample/scratch.h"
#include "data/transform/conversion.h"
#include "data/transform/device_split.h"
#include "penstock/buffer.h"
#include "penstock/tensor.h"

namespace penstock::data {

/// What one thread knows of transforms that are cut in two. Not thread-safe.
class DeviceSteps {
 public:
  /// Tensors of the batch by the number of their output; none where the block has what the plan says.
  using Made = std::vector<std::optional<Tensor>>;

  DeviceSteps();
  ~DeviceSteps();
  DeviceSteps(const DeviceSteps&) = delete;
  DeviceSteps& operator=(const DeviceSteps&) = delete;

  /// Looks which columns of the batch, as it is planned, can leave steps to the device: those whose samples are stacked
  /// and leave the same ones. If some can, changes the samples to what is to be done here, in memory of `arena`
  /// and of this object until the next call, and returns true: the batch has to be planned again.
  bool take(Fetched& fetched, const BatchPlan& plan, Arena& arena);
  /// Does the steps that the last `take` left, on the device of `block`, in the current stream's order. `plan`: the
  /// second one. A device's or memory's Error.
  Made run(const BatchPlan& plan, const Buffer& block);

 private:
  struct Cut;
  struct Parameters;
  using CutPtr = std::shared_ptr<Cut>;
  /// A column of which steps are left.
  struct Left {
    std::uint32_t tensor = 0;  ///< its number in each sample
    std::uint32_t output = 0;
  };

  CutPtr cut_of(const Sample& sample);
  bool leaves_the_same(const Placement& placement, const Output& output) const;
  Sample changed(const Sample& sample, Cut& cut, const std::vector<bool>& chosen, Arena& arena) const;
  const Parameters& parameters(const std::vector<Op>& steps, const Tensor& batch);
  Tensor run(const std::vector<Op>& steps, const Tensor& batch);

  std::vector<CutPtr> cuts_;      ///< the latest ones
  std::vector<CutPtr> of_batch_;  ///< of each sample of the batch at hand
  std::vector<Left> left_;        ///< of the batch at hand
  std::vector<Parameters> parameters_;
};

}  // namespace penstock::data
