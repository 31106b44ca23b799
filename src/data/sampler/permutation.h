#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "data/sampler/order_impl.h"
#include "data/sampler/torch_random.h"

namespace penstock::data {

/// torch.randperm of fewer than kLargePermutation indices, or the first `size` of them, made as far as they are asked
/// for: the first batches need not wait for the order of a long epoch, and workers share in the making of the rest.
class Permutation final : public detail::OrderImpl {
 public:
  Permutation(std::int64_t population, std::int64_t size, const Generator& generator);

  std::int64_t size() const noexcept override { return size_; }
  void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept override;

 private:
  std::int64_t size_;
  mutable std::mutex mutex_;
  mutable Generator generator_;
  mutable std::vector<std::uint32_t> indices_;
  mutable std::size_t final_ = 0;  ///< those before this position stay
};

}  // namespace penstock::data
