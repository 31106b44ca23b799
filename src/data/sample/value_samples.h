#pragma once

// Samples that are values of the program: what functions of map, datasets and streams of its own give.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/dataset_impl.h"
#include "data/sample/runner.h"
#include "data/sample/work.h"
#include "penstock/value.h"

namespace penstock::data {

/// Throws unless `value` can be a sample: kUnsupported, kLimit as value_layout, kDeviceMismatch for a tensor that is
/// not in host memory. Its layout otherwise.
LayoutPtr layout_of_value(const Value& value, StructureInterner& interner);

/// The tensor of a value: kUnsupported where it is not loaded, kDeviceMismatch where it is not in host memory.
const Tensor& host_tensor(const Value& value);

/// Adds the tensors of a value, in the order of its leaves.
void collect_tensors(const Value& value, std::vector<Tensor>& out);
/// What they take.
std::uint64_t tensor_bytes(const Value& value);

/// Samples that a function of the program gave, one for each thread and dataset: remembers the layout of the last one,
/// because most are alike. Where the batch awaits just these bytes, they are put into their slot while the nearest
/// cache has them, and the function's memory goes before the next call.
class ValueSamples : public Scratch::State {
 public:
  /// `value` as the sample at `position` of those that `dataset` was asked for. What it points to is kept by `scratch`.
  /// Throws Error as layout_of_value.
  Sample sample(const Value& value, std::size_t position, const void* dataset, const ExpectedSlots& expected,
                Scratch& scratch);

 private:
  const Layout* layout(const Value& value, Scratch& scratch);

  LayoutPtr last_;
};

/// DatasetImpl::fetch for a dataset whose samples are what its `value` gives.
void fetch_values(const detail::DatasetImpl& dataset, std::span<const std::int64_t> indices, const Work& work,
                  std::span<Sample> out);

/// The same where `make` gives the values of several samples at once, in their order: as many as are worth a way to
/// another process. `slots`: of these, as Runner::call takes them.
using MakeSeveral =
    std::function<std::vector<Called>(std::span<const std::int64_t> indices, const ExpectedSlots& slots)>;
void fetch_values_together(const detail::DatasetImpl& dataset, std::span<const std::int64_t> indices, const Work& work,
                           std::span<Sample> out, const MakeSeveral& make);

}  // namespace penstock::data
