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

class EqualBatches final : public BatchSamplerInterface {
 public:
  EqualBatches(Sampler sampler, std::int64_t batch_size, bool drop_last)
      : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {}

  std::int64_t size() const noexcept override { return count_batches(sampler_.size(), batch_size_, drop_last_); }
  std::int64_t replicas() const noexcept override { return sampler_.replicas(); }
  std::string_view kind() const noexcept override { return sampler_.kind(); }

  BatchOrder batches(std::uint64_t seed, std::uint64_t epoch) const override {
    Order order = sampler_.order(seed, epoch);
    if (order.size() != sampler_.size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the sampler gives {} for epoch {}, but its size() is {}",
                               core::counted(order.size(), "index", "indices"), epoch, sampler_.size()));
    }
    return BatchOrder::equal(std::move(order), batch_size_, drop_last_);
  }

 private:
  Sampler sampler_;
  std::int64_t batch_size_;
  bool drop_last_;
};

class GivenBatches final : public BatchSamplerInterface {
 public:
  explicit GivenBatches(BatchOrder batches) : batches_(std::move(batches)) {}

  std::int64_t size() const noexcept override { return batches_.size(); }
  std::string_view kind() const noexcept override { return "given batches"; }
  BatchOrder batches(std::uint64_t, std::uint64_t) const override { return batches_; }

 private:
  BatchOrder batches_;
};

}  // namespace

BatchOrder::BatchOrder(Order order, std::vector<std::int64_t> ends) : order_(std::move(order)), ends_(std::move(ends)) {
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

BatchOrder BatchOrder::equal(Order order, Integer batch_size, Flag drop_last) {
  require_batch_size(batch_size);
  BatchOrder out;
  out.order_ = std::move(order);
  out.batch_size_ = batch_size;
  out.count_ = count_batches(out.order_.size(), batch_size, drop_last);
  return out;
}

const std::vector<std::int64_t> BatchOrder::operator[](Integer number) const {
  std::int64_t begin = number * batch_size_;
  std::int64_t samples = std::min(batch_size_, order_.size() - begin);
  if (batch_size_ == 0) {
    const auto n = static_cast<std::size_t>(number);
    begin = n == 0 ? 0 : ends_[n - 1];
    samples = ends_[n] - begin;
  }
  std::vector<std::int64_t> out(static_cast<std::size_t>(samples));
  order_.copy(begin, out);
  return out;
}

BatchSampler sampler::batches(Sampler sampler, Integer batch_size, Flag drop_last) {
  require_batch_size(batch_size);
  return EqualBatches(std::move(sampler), batch_size, drop_last);
}

BatchSampler sampler::batches(std::vector<std::vector<std::int64_t>> given) {
  std::vector<std::int64_t> indices;
  std::vector<std::int64_t> ends;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].empty()) {
      throw Error(ErrorCode::kInvalidArgument, core::format("batch {} of the given batches is empty", i));
    }
    indices.insert(indices.end(), given[i].begin(), given[i].end());
    ends.push_back(static_cast<std::int64_t>(indices.size()));
  }
  return GivenBatches(BatchOrder(std::move(indices), std::move(ends)));
}

}  // namespace penstock
