#include "data/dataset/hosted.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset_impl.h"

namespace penstock {

namespace {

using data::HostScope;

class Hosted final : public detail::DatasetImpl {
 public:
  Hosted(Dataset dataset, std::shared_ptr<data::Host> host) : dataset_(std::move(dataset)), host_(std::move(host)) {
    for (const data::UserFunction& function : dataset_.impl().batch_functions()) {
      functions_.push_back([function, held = host_](const Value& batch, const data::RandomKey& key) {
        const HostScope scope(held.get());
        return function(batch, key);
      });
    }
  }

  std::int64_t size() const noexcept override { return below().size(); }
  std::string describe(std::int64_t index) const override { return below().describe(index); }
  std::string path(std::int64_t index) const override { return below().path(index); }
  bool samples_are_files() const noexcept override { return below().samples_are_files(); }
  std::uint32_t draws() const noexcept override { return below().draws(); }
  std::uint32_t random_stages() const noexcept override { return below().random_stages(); }
  std::span<const std::string> classes() const noexcept override { return below().classes(); }
  std::uint64_t read_bytes(std::int64_t index) const override { return below().read_bytes(index); }
  std::span<const data::UserFunction> batch_functions() const noexcept override { return functions_; }
  std::optional<data::EvenRows> even_rows(std::span<const std::int64_t> indices,
                                          data::Scratch& scratch) const override {
    return below().even_rows(indices, scratch);
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    const HostScope scope(host_.get());
    // Slots of the batch are for whose samples these are.
    if (work.guesses.expected.dataset == this) work.guesses.expected.dataset = &below();
    below().fetch(indices, work, out);
  }
  Value value(std::int64_t index, const data::Work& work) const override {
    const HostScope scope(host_.get());
    return below().value(index, work);
  }

 private:
  const detail::DatasetImpl& below() const noexcept { return dataset_.impl(); }

  Dataset dataset_;
  std::shared_ptr<data::Host> host_;
  std::vector<data::UserFunction> functions_;
};

}  // namespace

Dataset data::hosted(const Dataset& dataset, std::shared_ptr<Host> host) {
  return Dataset(std::make_shared<Hosted>(dataset, std::move(host)));
}

}  // namespace penstock
