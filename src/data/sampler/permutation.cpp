#include "data/sampler/permutation.h"

#include <algorithm>
#include <numeric>

namespace penstock::data {

Permutation::Permutation(std::int64_t population, std::int64_t size, const Generator& generator)
    : size_(size), generator_(generator), indices_(static_cast<std::size_t>(population)) {
  std::iota(indices_.begin(), indices_.end(), std::uint32_t{0});
}

void Permutation::copy(std::int64_t position, std::span<std::int64_t> out) const noexcept {
  // Far enough that what memory has to fetch for it comes in time.
  constexpr std::size_t kFewest = 1024;
  const auto begin = static_cast<std::size_t>(position);
  const std::size_t end = begin + out.size();
  const std::scoped_lock lock(mutex_);
  if (end > final_) {
    const std::size_t until = std::min(std::max(end, final_ + kFewest), indices_.size());
    permute(std::span(indices_), final_, until, generator_);
    final_ = until;
  }
  std::copy_n(indices_.begin() + static_cast<std::ptrdiff_t>(begin), out.size(), out.begin());
}

}  // namespace penstock::data
