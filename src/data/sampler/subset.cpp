#include <span>
#include <utility>

#include "data/sampler/torch_random.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class Subset final : public SamplerInterface {
 public:
  Subset(std::vector<std::int64_t> indices, bool shuffle) : indices_(std::move(indices)), shuffle_(shuffle) {}

  std::int64_t size() const noexcept override { return indices_.size(); }
  std::string_view kind() const noexcept override { return shuffle_ ? "shuffled subset" : "subset"; }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    if (!shuffle_) return indices_;
    data::Generator generator(seed + epoch);
    std::vector<std::int64_t> out(static_cast<std::size_t>(size()));
    data::randperm(std::span(out), generator);
    for (std::int64_t& index : out) index = indices_[index];
    return out;
  }

 private:
  Order indices_;
  bool shuffle_;
};

}  // namespace

Sampler sampler::subset(std::vector<std::int64_t> indices, Flag shuffle) { return Subset(std::move(indices), shuffle); }

}  // namespace penstock
