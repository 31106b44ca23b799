#include "data/files/named_after.h"

#include <memory>
#include <utility>

#include "data/forwarding.h"

namespace penstock::data {
namespace {

class NamedAfter final : public Forwarding {
 public:
  NamedAfter(Dataset files, Dataset samples) : Forwarding(std::move(samples)), files_(std::move(files)) {}

  std::string describe(std::int64_t index) const override { return files_.impl().describe(index); }
  std::string path(std::int64_t index) const override { return files_.impl().path(index); }
  std::size_t root_size(std::int64_t index) const override { return files_.impl().root_size(index); }
  bool samples_are_files() const noexcept override { return true; }
  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    below().fetch(indices, work.with(work.slots.handed_on(this, &below())), out);
  }
  Value value(std::int64_t index, const Work& work) const override { return below().value(index, work); }

 private:
  Dataset files_;
};

}  // namespace

Dataset named_after(Dataset files, Dataset samples) {
  return Dataset(std::make_shared<NamedAfter>(std::move(files), std::move(samples)));
}

}  // namespace penstock::data
