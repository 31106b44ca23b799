#include <memory>
#include <utility>

#include "core/format.h"
#include "data/dataset_impl.h"

namespace penstock {

namespace {

class Strings final : public detail::DatasetImpl {
 public:
  explicit Strings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    auto structure = std::make_shared<data::Structure>();
    structure->leaves.push_back({.kind = data::LeafKind::kString});
    structure_ = std::move(structure);
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(strings_.size()); }
  std::string describe(std::int64_t index) const override { return core::format("<strings>[{}]", index); }
  std::uint64_t read_bytes(std::int64_t) const override { return 0; }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto layout = std::make_shared<data::Layout>();
      layout->structure = structure_;
      layout->scalars.push_back(Value::string(strings_[static_cast<std::size_t>(indices[i])]));
      out[i] = {layout.get(), {nullptr}};
      work.scratch.objects.push_back(std::move(layout));
    }
  }

 private:
  std::vector<std::string> strings_;
  data::StructurePtr structure_;
};

}  // namespace

Dataset strings(std::vector<std::string> strings) { return Dataset(std::make_shared<Strings>(std::move(strings))); }

}  // namespace penstock
