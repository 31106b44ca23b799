#pragma once

// A chain of transforms cut in two, for batches that go to a device. Where the first steps make elements larger (uint8
// to float32), fewer bytes cross the bus when the device does them.

#include <optional>
#include <vector>

#include "data/sample/layout.h"
#include "data/transform/op.h"

namespace penstock::data {

struct DeviceSplit {
  /// What is done before the copy, in order. May be empty.
  std::vector<Op> here;
  /// What is left: CastOp, ScaleOp and NormalizeOp. A NormalizeOp has its values for the finished sample: a mean and a
  /// deviation for each place along `dim`, which is not negative, or one of each.
  std::vector<Op> there;

  friend bool operator==(const DeviceSplit&, const DeviceSplit&) = default;
};

/// The cut that lets the fewest bytes cross, with as much as possible before it. Nothing where the finished sample is
/// as small as any. `ops` suit `input`, as for a Conversion.
std::optional<DeviceSplit> split_for_device(const std::vector<Op>& ops, const TensorLayout& input);

}  // namespace penstock::data
