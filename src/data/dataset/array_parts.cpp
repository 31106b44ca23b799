#include "data/dataset/array_parts.h"

#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset_impl.h"
#include "penstock/error.h"

namespace penstock::data {

const SampleArray& array_of(const Dataset& dataset, std::string_view taken_of) {
  if (const SampleArray* const array = dataset.impl().array()) return *array;
  core::refuse(core::format("{}, which this dataset is not; put transforms, zip and subset behind them", taken_of));
}

ArrayParts::ArrayParts(SampleArray array) : array_(std::move(array)) {
  contiguous_ = TensorLayout(array_.dtype, array_.shape, array_.strides).contiguous;
  if (!array_.values.defined() && !contiguous_) {
    throw Error(ErrorCode::kUnsupported,
                "rows of this array have gaps between them in their file, so that several are not one read; open it "
                "with mmap, or load the tensor and take rows() of that",
                {.path = array_.file->name()});
  }
  row_bytes_ = core::checked_mul(static_cast<std::uint64_t>(array_.shape.drop_front(1).numel()),
                                 std::uint64_t{array_.dtype.itemsize()}, "the size of a row");
  step_ = static_cast<std::uint64_t>(array_.strides[0]) * array_.dtype.itemsize();
}

Payload ArrayParts::at(std::int64_t row) const {
  return row_bytes_ == 0 ? Payload{} : array_.at(static_cast<std::uint64_t>(row) * step_);
}

TensorLayout ArrayParts::layout(std::int64_t rows) const {
  std::vector<std::int64_t> sizes(array_.shape.begin(), array_.shape.end());
  sizes[0] = rows;
  return {array_.dtype, Shape(std::span<const std::int64_t>(sizes)), array_.strides};
}

std::string ArrayParts::describe(std::int64_t begin, std::int64_t length) const {
  return core::format("{}[{}:{}]", array_.file->name(), begin, begin + length);
}

}  // namespace penstock::data
