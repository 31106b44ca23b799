#include "data/dataset/rows.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "data/dataset/array_parts.h"
#include "data/dataset/sample_array.h"
#include "data/dataset_impl.h"

namespace penstock {

namespace {

/// Rows of an array in memory, in a mapped file, or in one that is read. Those in memory are copied under guard as
/// mapped ones are: a tensor may be a mapping of somebody else's.
class Rows final : public detail::DatasetImpl {
 public:
  explicit Rows(data::SampleArray array) : array_(std::move(array)) {
    if (array_.shape.rank() == 0) {
      throw Error(ErrorCode::kShapeMismatch,
                  "the array has shape () and therefore no rows; name an array with one dimension or more",
                  {.path = array_.file->name()});
    }
    if (array_.values.defined() && array_.values.device().type != DeviceType::kCpu) {
      throw Error(ErrorCode::kDeviceMismatch,
                  core::format("rows are taken from host memory, but the tensor lies on {}; copy "
                               "it with to(\"cpu\")",
                               array_.values.device().to_string()));
    }
    layout_ = data::single_tensor_layout(array_.layout(array_.shape.drop_front(1), array_.strides.drop_front(1)));
    step_ = static_cast<std::size_t>(array_.strides[0]) * array_.dtype.itemsize();
    const bool empty = layout_->tensors[0].nbytes == 0;
    for (std::size_t d = 1; d < array_.shape.rank() && !empty; ++d) {
      extent_ += static_cast<std::uint64_t>(array_.shape[d] - 1) * static_cast<std::uint64_t>(array_.strides[d]) *
                 array_.dtype.itemsize();
    }
    extent_ = empty ? 0 : extent_ + array_.dtype.itemsize();
  }

  std::int64_t size() const override { return array_.shape[0]; }
  std::string describe(std::int64_t index) const override { return core::format("{}[{}]", array_.name(), index); }
  std::uint64_t read_bytes(std::int64_t) const override { return layout_->tensors[0].nbytes; }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    return array_.is_at_hand(static_cast<std::uint64_t>(index) * step_, extent_, pages);
  }
  std::shared_ptr<const data::ArrayParts> arrays() const override {
    return std::make_shared<const data::ArrayParts>(array_);
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    const std::span<data::Payload> payloads = work.scratch.arena.array<data::Payload>(indices.size());
    const data::EvenColumn column = this->column(indices);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      payloads[i] = column.payload(i);
      out[i] = {layout_.get(), {&payloads[i]}};
    }
  }
  std::optional<data::EvenRows> even_rows(std::span<const std::int64_t> indices,
                                          data::Scratch& scratch) const override {
    const std::span<data::EvenColumn> columns = scratch.arena.array<data::EvenColumn>(1);
    columns[0] = column(indices);
    return data::EvenRows{layout_.get(), columns};
  }

 private:
  data::EvenColumn column(std::span<const std::int64_t> indices) const {
    const bool empty = layout_->tensors[0].nbytes == 0;
    return {.first = empty ? data::Payload{} : array_.at(0), .step = step_, .at = indices};
  }

  data::SampleArray array_;
  data::LayoutPtr layout_;
  std::size_t step_ = 0;
  std::uint64_t extent_ = 0;  ///< bytes from the first element of a row to behind its last
};

std::string tensor_names(const Archive& archive) {
  constexpr std::size_t kShown = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(archive.entries().size(), kShown); ++i) {
    out += (i == 0 ? "" : ", ") + core::quoted(archive.entries()[i].name);
  }
  return archive.entries().size() > kShown ? out + ", ..." : out;
}

LazyTensor only_tensor(const Archive& archive) {
  const std::size_t count = archive.entries().size();
  if (count == 1) return archive.entry(0);
  throw Error(ErrorCode::kInvalidArgument,
              count == 0 ? "the file holds no tensor whose rows could be samples"
                         : core::format("the file holds {} tensors ({}); name one of them with key", count,
                                        tensor_names(archive)),
              {.path = archive.path()});
}

}  // namespace

Dataset rows(const Tensor& tensor) {
  if (!tensor.defined()) throw Error(ErrorCode::kInvalidArgument, "the tensor to take rows of is undefined");
  return Dataset(std::make_shared<Rows>(data::sample_array(tensor, "<tensor>")));
}

Dataset rows(const LazyTensor& tensor, OptionalFlag mmap) {
  const auto file = std::make_shared<const data::HeldFile>(tensor.source());
  return Dataset(std::make_shared<Rows>(data::sample_array(tensor, data::access_for(mmap, tensor.nbytes()), file)));
}

Dataset rows(TextView path, TextView key, OptionalFlag mmap) { return data::rows_in(open(path), key, mmap); }

Dataset data::rows_in(const Archive& archive, std::string_view key, std::optional<bool> mmap) {
  return rows(key.empty() ? only_tensor(archive) : archive[key], mmap);
}

}  // namespace penstock
