#include "data/files/named_after.h"

#include <memory>
#include <utility>

#include "data/dataset_impl.h"

namespace penstock::data {
namespace {

class NamedAfter final : public detail::DatasetImpl {
 public:
  NamedAfter(Dataset files, Dataset samples) : files_(std::move(files)), samples_(std::move(samples)) {}

  std::int64_t size() const override { return samples_.size(); }
  std::string describe(std::int64_t index) const override { return files_.impl().describe(index); }
  std::string path(std::int64_t index) const override { return files_.impl().path(index); }
  std::size_t root_size(std::int64_t index) const override { return files_.impl().root_size(index); }
  bool samples_are_files() const noexcept override { return true; }
  std::uint32_t draws() const noexcept override { return samples_.impl().draws(); }
  std::uint32_t random_stages() const noexcept override { return samples_.impl().random_stages(); }
  std::uint64_t read_bytes(std::int64_t index) const override { return samples_.impl().read_bytes(index); }
  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    samples_.impl().fetch(indices, work, out);
  }
  Value value(std::int64_t index, const Work& work) const override { return samples_.impl().value(index, work); }

 private:
  Dataset files_;
  Dataset samples_;
};

}  // namespace

Dataset named_after(Dataset files, Dataset samples) {
  return Dataset(std::make_shared<NamedAfter>(std::move(files), std::move(samples)));
}

}  // namespace penstock::data
