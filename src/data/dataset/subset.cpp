#include <memory>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "data/dataset_impl.h"

namespace penstock {

namespace {

class Subset final : public detail::DatasetImpl {
 public:
  Subset(Dataset dataset, std::vector<std::int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {}

  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(indices_.size()); }
  std::string describe(std::int64_t index) const override {
    return dataset_.impl().describe(indices_[static_cast<std::size_t>(index)]);
  }
  std::string path(std::int64_t index) const override {
    return dataset_.impl().path(indices_[static_cast<std::size_t>(index)]);
  }
  bool samples_are_files() const noexcept override { return dataset_.impl().samples_are_files(); }
  std::uint32_t draws() const noexcept override { return dataset_.impl().draws(); }
  std::span<const std::string> classes() const noexcept override { return dataset_.impl().classes(); }
  std::uint64_t read_bytes(std::int64_t index) const override {
    return dataset_.impl().read_bytes(indices_[static_cast<std::size_t>(index)]);
  }

  void locate(std::span<const std::int64_t> indices, data::Scratch& scratch,
              std::span<data::Sample> out) const override {
    const std::span<std::int64_t> inner = scratch.arena.array<std::int64_t>(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) inner[i] = indices_[static_cast<std::size_t>(indices[i])];
    dataset_.impl().locate(inner, scratch, out);
  }
  Value value(std::int64_t index, data::Scratch& scratch) const override {
    return dataset_.impl().value(indices_[static_cast<std::size_t>(index)], scratch);
  }
  std::span<const data::UserFunction> batch_functions() const noexcept override {
    return dataset_.impl().batch_functions();
  }
  std::uint32_t random_stages() const noexcept override { return dataset_.impl().random_stages(); }

 private:
  Dataset dataset_;
  std::vector<std::int64_t> indices_;
};

}  // namespace

Dataset subset(const Dataset& dataset, std::vector<std::int64_t> indices) {
  const std::int64_t size = dataset.size();
  for (std::int64_t& index : indices) {
    if (index < -size || index >= size) {
      throw Error(ErrorCode::kIndexOutOfRange,
                  core::format("index {} of a subset is outside the dataset, which has {}", index,
                               core::counted(static_cast<std::uint64_t>(size), "sample")));
    }
    if (index < 0) index += size;
  }
  return Dataset(std::make_shared<Subset>(dataset, std::move(indices)));
}

}  // namespace penstock
