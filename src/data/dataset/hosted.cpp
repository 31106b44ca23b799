#include "data/dataset/hosted.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "data/forwarding.h"

namespace penstock {

namespace {

using data::HostScope;

class Hosted final : public data::Forwarding {
 public:
  Hosted(const Dataset& dataset, std::shared_ptr<data::Host> host) : Forwarding(dataset), host_(std::move(host)) {
    for (const data::UserFunction& function : below().batch_functions()) {
      functions_.push_back([function, held = host_](const Value& batch, const data::RandomKey& key) {
        const HostScope scope(held.get());
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
    const HostScope scope(host_.get());
    below().fetch(indices, work.with(work.slots.handed_on(this, &below())), out);
  }
  Value value(std::int64_t index, const data::Work& work) const override {
    const HostScope scope(host_.get());
    return below().value(index, work);
  }

  data::Host* host() const noexcept { return host_.get(); }

 private:
  std::shared_ptr<data::Host> host_;
  std::vector<data::UserFunction> functions_;
};

}  // namespace

Dataset data::hosted(const Dataset& dataset, std::shared_ptr<Host> host) {
  return Dataset(std::make_shared<Hosted>(dataset, std::move(host)));
}

data::Host* data::host_of(const Dataset& dataset) noexcept {
  const auto* const found = dynamic_cast<const Hosted*>(&dataset.impl());
  return found == nullptr ? nullptr : found->host();
}

}  // namespace penstock
