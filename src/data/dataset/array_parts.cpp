#include "data/dataset/array_parts.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset_impl.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// Rows that are to be those of one array have one dtype and shape.
void require_alike(const SampleArray& first, const SampleArray& other) {
  const ErrorContext where{.path = other.file->name()};
  if (other.dtype != first.dtype) {
    throw Error(ErrorCode::kDTypeMismatch,
                core::format("found {}, but {} has {}; slices and windows of several arrays take one type",
                             other.dtype.name(), first.name(), first.dtype.name()),
                where);
  }
  const Shape own = other.shape.drop_front(1);
  const Shape wanted = first.shape.drop_front(1);
  if (own == wanted) return;
  throw Error(ErrorCode::kShapeMismatch,
              core::format("found rows of shape {}, but those of {} have {}; slices and windows of several arrays take "
                           "one shape",
                           own.to_string(), first.name(), wanted.to_string()),
              where);
}

std::string and_more(const std::string& first, std::size_t arrays) {
  return arrays == 1 ? first : core::format("{} and {} more", first, arrays - 1);
}

}  // namespace

ArrayParts arrays_of(const Dataset& dataset, std::string_view taken_of) {
  if (const auto parts = dataset.impl().arrays()) return *parts;
  core::refuse(core::format("{}, which this dataset is not; put transforms, zip and subset behind them", taken_of));
}

ArrayParts::ArrayParts(SampleArray array) : ends_{array.shape[0]} {
  contiguous_ = TensorLayout(array.dtype, array.shape, array.strides).contiguous;
  if (!array.values.defined() && !contiguous_) {
    throw Error(ErrorCode::kUnsupported,
                "rows of this array have gaps between them in their file, so that several are not one read; open it "
                "with mmap, or load the tensor and take rows() of that",
                {.path = array.file->name()});
  }
  row_bytes_ = core::checked_mul(static_cast<std::uint64_t>(array.shape.drop_front(1).numel()),
                                 std::uint64_t{array.dtype.itemsize()}, "the size of a row");
  step_ = static_cast<std::uint64_t>(array.strides[0]) * array.dtype.itemsize();
  arrays_.push_back(std::move(array));
}

ArrayParts ArrayParts::joined(std::span<const std::shared_ptr<const ArrayParts>> parts) {
  if (parts.size() == 1) return *parts[0];
  ArrayParts out;
  out.contiguous_ = true;
  out.row_bytes_ = out.step_ = parts[0]->row_bytes_;
  std::int64_t rows = 0;
  for (const auto& part : parts) {
    for (std::size_t i = 0; i < part->arrays(); ++i) {
      const SampleArray& array = part->arrays_[i];
      require_alike(parts[0]->arrays_[0], array);
      if (!part->contiguous_) {
        throw Error(ErrorCode::kUnsupported,
                    "the rows of this array do not lie one behind the other, so that it cannot be one of several; take "
                    "rows() of a contiguous copy",
                    {.path = array.file->name()});
      }
      rows = core::checked_add(rows, array.shape[0], "the rows of all arrays");
      out.arrays_.push_back(array);
      out.ends_.push_back(rows);
    }
  }
  return out;
}

std::size_t ArrayParts::array_of(std::int64_t row) const noexcept {
  if (arrays_.size() == 1) return 0;
  const auto behind = std::upper_bound(ends_.begin(), ends_.end(), row);
  // A part without rows may lie at the very end.
  return std::min(static_cast<std::size_t>(behind - ends_.begin()), arrays_.size() - 1);
}

std::string ArrayParts::name() const { return and_more(file(0).name(), arrays()); }
std::string ArrayParts::describe() const { return and_more(arrays_[0].name(), arrays()); }

Payload ArrayParts::at(std::size_t array, std::int64_t row) const {
  if (row_bytes_ == 0) return {};
  return arrays_[array].at(static_cast<std::uint64_t>(row - begin(array)) * step_);
}

bool ArrayParts::are_at_hand(std::int64_t begin, std::int64_t rows, io::ResidentPages& pages) const noexcept {
  if (rows <= 0 || row_bytes_ == 0) return true;
  const std::size_t array = array_of(begin);
  if (begin + rows > end(array)) return false;
  const auto behind = static_cast<std::uint64_t>(begin - this->begin(array)) * step_;
  return arrays_[array].is_at_hand(behind, static_cast<std::uint64_t>(rows) * step_, pages);
}

TensorLayout ArrayParts::layout(std::int64_t rows) const {
  const SampleArray& any = arrays_[0];
  std::vector<std::int64_t> sizes(any.shape.begin(), any.shape.end());
  sizes[0] = rows;
  const Shape shape{std::span<const std::int64_t>(sizes)};
  // An array of one row may have any stride from row to row.
  return any.layout(shape, contiguous_ ? shape.contiguous_strides() : any.strides);
}

std::string ArrayParts::describe(std::int64_t begin, std::int64_t length) const {
  const std::size_t array = array_of(begin);
  const std::int64_t first = begin - this->begin(array);
  if (begin + length > end(array)) {
    const std::size_t last = array_of(begin + length - 1);
    return core::format("{}[{}:] to {}[:{}]", arrays_[array].name(), first, arrays_[last].name(),
                        begin + length - this->begin(last));
  }
  return core::format("{}[{}:{}]", arrays_[array].name(), first, first + length);
}

}  // namespace penstock::data
