#include <algorithm>
#include <utility>

#include "core/format.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

class EqualBatches final : public BatchSampler {
 public:
  EqualBatches(SamplerPtr sampler, std::int64_t batch_size, bool drop_last)
      : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {}

  std::int64_t size() const noexcept override { return count(sampler_->size()); }

  Batches batches(std::uint64_t seed, std::uint64_t epoch) const override {
    Batches out;
    out.indices = sampler_->order(seed, epoch);
    const auto samples = static_cast<std::int64_t>(out.indices.size());
    if (samples != sampler_->size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the sampler gives {} indices for epoch {}, but its size() is {}", samples, epoch,
                               sampler_->size()));
    }
    out.ends.resize(static_cast<std::size_t>(count(samples)));
    std::int64_t end = 0;
    for (std::int64_t& batch_end : out.ends) {
      end += std::min(batch_size_, samples - end);
      batch_end = end;
    }
    return out;
  }

 private:
  std::int64_t count(std::int64_t samples) const noexcept {
    return samples / batch_size_ + (!drop_last_ && samples % batch_size_ != 0 ? 1 : 0);
  }

  SamplerPtr sampler_;
  std::int64_t batch_size_;
  bool drop_last_;
};

class GivenBatches final : public BatchSampler {
 public:
  explicit GivenBatches(const std::vector<std::vector<std::int64_t>>& given) {
    for (const std::vector<std::int64_t>& batch : given) {
      batches_.indices.insert(batches_.indices.end(), batch.begin(), batch.end());
      batches_.ends.push_back(static_cast<std::int64_t>(batches_.indices.size()));
    }
  }

  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(batches_.ends.size()); }
  Batches batches(std::uint64_t, std::uint64_t) const override { return batches_; }

 private:
  Batches batches_;
};

}  // namespace

BatchSamplerPtr batches(SamplerPtr sampler, std::int64_t batch_size, bool drop_last) {
  if (!sampler) throw Error(ErrorCode::kInvalidArgument, "the sampler to take batches from is null");
  if (batch_size < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("batch_size should be a positive integer value, but got batch_size={}", batch_size));
  }
  return std::make_shared<EqualBatches>(std::move(sampler), batch_size, drop_last);
}

BatchSamplerPtr batches(std::vector<std::vector<std::int64_t>> given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].empty()) {
      throw Error(ErrorCode::kInvalidArgument, core::format("batch {} of the given batches is empty", i));
    }
  }
  return std::make_shared<GivenBatches>(given);
}

}  // namespace penstock
