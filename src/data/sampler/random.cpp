#include <algorithm>
#include <memory>

#include "core/format.h"
#include "core/refuse.h"
#include "data/sample/computed_permutation.h"
#include "data/sampler/drawn.h"
#include "data/sampler/narrow.h"
#include "data/sampler/permutation.h"
#include "data/sampler/torch_random.h"
#include "ops/philox.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class Random final : public SamplerInterface {
 public:
  Random(std::int64_t population, std::int64_t samples, bool replacement)
      : population_(population), samples_(samples), replacement_(replacement) {}

  std::int64_t size() const noexcept override { return samples_; }
  std::string_view kind() const noexcept override { return replacement_ ? "random with replacement" : "random"; }

  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    data::Generator generator(seed + epoch);
    if (!replacement_ && samples_ <= population_ && population_ < data::kLargePermutation) {
      return Order(std::make_shared<data::Permutation>(population_, samples_, generator));
    }
    if (replacement_) {
      // torch draws in chunks of 32 from one generator, which gives the same numbers as drawing all at once.
      return data::drawn(samples_, population_, [generator, population = population_](auto out) mutable {
        data::randint(population, out, generator);
      });
    }
    return data::narrowest(samples_, population_, [&](auto out) { permute(out, generator); });
  }

 private:
  template <class T>
  void permute(std::span<T> out, data::Generator& generator) const {
    const auto population = static_cast<std::size_t>(population_);
    while (out.size() >= population && population > 0) {
      data::randperm(out.first(population), generator);
      out = out.subspan(population);
    }
    if (out.empty()) return;
    std::vector<T> last(population);
    data::randperm(std::span(last), generator);
    std::copy_n(last.begin(), out.size(), out.begin());
  }

  std::int64_t population_;
  std::int64_t samples_;
  bool replacement_;
};

}  // namespace

namespace {

/// Positions of permutations that are computed, one behind the other.
class CompactOrder final : public detail::OrderImpl {
 public:
  CompactOrder(std::int64_t population, std::int64_t samples, std::uint64_t seed, std::uint64_t epoch)
      : population_(population), samples_(samples), key_(ops::philox(seed, epoch).low()) {}

  std::int64_t size() const noexcept override { return samples_; }
  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept override {
    std::size_t done = 0;
    while (done < out.size()) {
      const std::int64_t at = position + static_cast<std::int64_t>(done);
      const std::int64_t begin = at % population_;
      const auto count = std::min(out.size() - done, static_cast<std::size_t>(population_ - begin));
      const data::ComputedPermutation order(population_,
                                            ops::philox(key_, static_cast<std::uint64_t>(at / population_)).low());
      for (std::size_t i = 0; i < count; ++i) out[done + i] = order(begin + static_cast<std::int64_t>(i));
      done += count;
    }
  }

 private:
  std::int64_t population_;
  std::int64_t samples_;
  std::uint64_t key_;
};

class CompactRandom final : public SamplerInterface {
 public:
  CompactRandom(std::int64_t population, std::int64_t samples) : population_(population), samples_(samples) {}

  std::int64_t size() const noexcept override { return samples_; }
  std::string_view kind() const noexcept override { return "random, compact"; }
  Order order(std::uint64_t seed, std::uint64_t epoch) const override {
    return Order(std::make_shared<CompactOrder>(population_, samples_, seed, epoch));
  }

 private:
  std::int64_t population_;
  std::int64_t samples_;
};

}  // namespace

Sampler sampler::random(Integer size, const RandomOptions& options) {
  const std::int64_t samples = options.num_samples.value_or(size);
  if (size < 0 || samples < 0 || (size == 0 && samples > 0)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("cannot draw {} {} from {}; num_samples must be 0 or more, and there must be something to "
                             "draw from",
                             samples, samples == 1 ? "sample" : "samples", size));
  }
  if (options.compact && options.replacement) {
    core::refuse("found compact and replacement, which exclude each other: what is drawn with replacement is kept");
  }
  if (options.compact) return CompactRandom(size, samples);
  return Random(size, samples, options.replacement);
}

}  // namespace penstock
