#include "data/random.h"

#include <algorithm>

#include "core/format.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class Random final : public Sampler {
 public:
  Random(std::int64_t population, std::int64_t samples, bool replacement)
      : population_(population), samples_(samples), replacement_(replacement) {}

  std::int64_t size() const noexcept override { return samples_; }

  std::vector<std::int64_t> order(std::uint64_t seed, std::uint64_t epoch) const override {
    if (samples_ == 0) return {};
    data::Generator generator(seed + epoch);
    return replacement_ ? drawn(generator) : permuted(generator);
  }

 private:
  // torch draws in chunks of 32 from one generator, which gives the same numbers as drawing all at once.
  std::vector<std::int64_t> drawn(data::Generator& generator) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(samples_));
    data::randint(population_, out, generator);
    return out;
  }

  std::vector<std::int64_t> permuted(data::Generator& generator) const {
    std::vector<std::int64_t> out = data::randperm(population_, generator);
    const auto wanted = static_cast<std::size_t>(samples_);
    while (out.size() < wanted) {
      const std::vector<std::int64_t> more = data::randperm(population_, generator);
      out.insert(out.end(), more.begin(),
                 more.begin() + static_cast<std::ptrdiff_t>(std::min(more.size(), wanted - out.size())));
    }
    out.resize(wanted);
    return out;
  }

  std::int64_t population_;
  std::int64_t samples_;
  bool replacement_;
};

}  // namespace

SamplerPtr random(std::int64_t size, const RandomOptions& options) {
  const std::int64_t samples = options.num_samples.value_or(size);
  if (size < 0 || samples < 0 || (size == 0 && samples > 0)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("cannot draw {} samples from {}; num_samples must be 0 or more, and there must be something to "
                     "draw from",
                     samples, size));
  }
  return std::make_shared<Random>(size, samples, options.replacement);
}

}  // namespace penstock
