#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "penstock/error.h"
#include "penstock/sampler.h"

namespace penstock {

namespace {

void require_batch_size(std::int64_t batch_size) {
  if (batch_size >= 1) return;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("batch_size should be a positive integer value, but got batch_size={}", batch_size));
}

std::int64_t count_batches(std::int64_t samples, std::int64_t batch_size, bool drop_last) noexcept {
  return samples / batch_size + (!drop_last && samples % batch_size != 0 ? 1 : 0);
}

class EqualBatches final : public BatchSampler {
 public:
  EqualBatches(SamplerPtr sampler, std::int64_t batch_size, bool drop_last)
      : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {}

  std::int64_t size() const noexcept override { return count_batches(sampler_->size(), batch_size_, drop_last_); }
  std::int64_t replicas() const noexcept override { return sampler_->replicas(); }
  std::string_view kind() const noexcept override { return sampler_->kind(); }

  Batches batches(std::uint64_t seed, std::uint64_t epoch) const override {
    Order order = sampler_->order(seed, epoch);
    if (order.size() != sampler_->size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the sampler gives {} for epoch {}, but its size() is {}",
                               core::counted(order.size(), "index", "indices"), epoch, sampler_->size()));
    }
    return Batches::equal(std::move(order), batch_size_, drop_last_);
  }

 private:
  SamplerPtr sampler_;
  std::int64_t batch_size_;
  bool drop_last_;
};

class GivenBatches final : public BatchSampler {
 public:
  explicit GivenBatches(Batches batches) : batches_(std::move(batches)) {}

  std::int64_t size() const noexcept override { return batches_.size(); }
  std::string_view kind() const noexcept override { return "given batches"; }
  Batches batches(std::uint64_t, std::uint64_t) const override { return batches_; }

 private:
  Batches batches_;
};

}  // namespace

BatchSampler::Batches::Batches(Order order, std::vector<std::int64_t> ends)
    : order_(std::move(order)), ends_(std::move(ends)) {
  std::int64_t begin = 0;
  for (const std::int64_t end : ends_) {
    if (end < begin || end > order_.size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the batch sampler ends a batch at position {}, after one that ended at {}, of {} "
                               "indices",
                               end, begin, order_.size()));
    }
    begin = end;
  }
}

BatchSampler::Batches BatchSampler::Batches::equal(Order order, std::int64_t batch_size, bool drop_last) {
  require_batch_size(batch_size);
  Batches out;
  out.order_ = std::move(order);
  out.batch_size_ = batch_size;
  out.count_ = count_batches(out.order_.size(), batch_size, drop_last);
  return out;
}

void BatchSampler::Batches::get(std::int64_t number, std::vector<std::int64_t>& out) const {
  std::int64_t begin = number * batch_size_;
  std::int64_t samples = std::min(batch_size_, order_.size() - begin);
  if (batch_size_ == 0) {
    const auto n = static_cast<std::size_t>(number);
    begin = n == 0 ? 0 : ends_[n - 1];
    samples = ends_[n] - begin;
  }
  out.resize(static_cast<std::size_t>(samples));
  order_.copy(begin, out);
}

BatchSamplerPtr batches(SamplerPtr sampler, std::int64_t batch_size, bool drop_last) {
  if (!sampler) throw Error(ErrorCode::kInvalidArgument, "the sampler to take batches from is null");
  require_batch_size(batch_size);
  return std::make_shared<EqualBatches>(std::move(sampler), batch_size, drop_last);
}

BatchSamplerPtr batches(std::vector<std::vector<std::int64_t>> given) {
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t> ends;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].empty()) {
      throw Error(ErrorCode::kInvalidArgument, core::format("batch {} of the given batches is empty", i));
    }
    indices.insert(indices.end(), given[i].begin(), given[i].end());
    ends.push_back(static_cast<std::int64_t>(indices.size()));
  }
  return std::make_shared<GivenBatches>(BatchSampler::Batches(std::move(indices), std::move(ends)));
}

}  // namespace penstock
