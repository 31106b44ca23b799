#include "data/dataset/with_runner.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "data/forwarding.h"

namespace penstock {

namespace {

using data::RunnerScope;

class WithRunner final : public data::Forwarding {
 public:
  WithRunner(const Dataset& dataset, std::shared_ptr<data::Runner> runner)
      : Forwarding(dataset), runner_(std::move(runner)) {
    for (const data::UserFunction& function : below().batch_functions()) {
      functions_.push_back([function, held = runner_](const Value& batch, const data::RandomKey& key) {
        const RunnerScope scope(held.get());
        return function(batch, key);
      });
    }
  }

  const FilesOptions* file_options() const noexcept override { return below().file_options(); }
  std::shared_ptr<const data::ArrayParts> arrays() const override { return below().arrays(); }
  std::shared_ptr<const data::SlicedArrays> slices() const override { return below().slices(); }
  std::span<const data::UserFunction> batch_functions() const noexcept override { return functions_; }
  std::optional<data::EvenRows> even_rows(std::span<const std::int64_t> indices,
                                          data::Scratch& scratch) const override {
    return below().even_rows(indices, scratch);
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    const RunnerScope scope(runner_.get());
    below().fetch(indices, work.with(work.slots.handed_on(this, &below())), out);
  }
  Value value(std::int64_t index, const data::Work& work) const override {
    const RunnerScope scope(runner_.get());
    return below().value(index, work);
  }

  data::Runner* runner() const noexcept { return runner_.get(); }

 private:
  std::shared_ptr<data::Runner> runner_;
  std::vector<data::UserFunction> functions_;
};

}  // namespace

Dataset data::with_runner(const Dataset& dataset, std::shared_ptr<Runner> runner) {
  return Dataset(std::make_shared<WithRunner>(dataset, std::move(runner)));
}

data::Runner* data::runner_of(const Dataset& dataset) noexcept {
  const auto* const found = dynamic_cast<const WithRunner*>(&dataset.impl());
  return found == nullptr ? nullptr : found->runner();
}

}  // namespace penstock
