#include "data/loader/taken_indices.h"

#include <algorithm>

#include "core/format.h"
#include "ops/philox.h"
#include "penstock/error.h"
#include "penstock/ranks.h"

namespace penstock::data {

namespace {

/// Of this process among those of a launcher: samplers of the program's own may know it.
std::int64_t own_rank() {
  try {
    return ranks().rank;
  } catch (const Error&) {
    return 0;  // the launcher contradicts itself
  }
}

}  // namespace

TakenIndices::TakenIndices(const Dealing& dealing) : shared_(dealing.shared()) {
  const BatchSampler& batches = dealing.batches();
  if (shared_) {
    whose_ = "all";
  } else if (!dealing.is_told() && batches.replicas() == 1) {  // else the sampler deals out, and not says to whom
    whose_ = std::to_string(own_rank());
  }
}

std::string TakenIndices::of(const std::shared_ptr<const BatchOrder>& order, std::int64_t count) const {
  if (whose_.empty() || !order || count == 0 || count > order->size()) return {};
  std::uint64_t sum = 0;
  if (!shared_) {
    sum = sum_of(order, count, true);
  } else {
    // The last batches of ranks may repeat samples, which lie behind the end of the shared order.
    const std::int64_t all = shared_->order->size();
    sum = sum_of(shared_->order, count > all / shared_->steps_each ? all : count * shared_->steps_each,
                 shared_->has_batches);
  }
  return core::format("{}:{:016x}", whose_, sum);
}

std::uint64_t TakenIndices::sum_of(const std::shared_ptr<const BatchOrder>& order, std::int64_t count,
                                   bool has_batches) const {
  if (order_.lock() != order || count < count_) {
    order_ = order;
    count_ = 0;
    sum_ = 0;
  }
  for (; count_ < count; ++count_) {
    const std::vector<std::int64_t> batch = (*order)[count_];
    if (has_batches) sum_ = ops::philox(sum_, batch.size()).low();
    for (const std::int64_t index : batch) sum_ = ops::philox(sum_, static_cast<std::uint64_t>(index)).low();
  }
  return sum_;
}

bool TakenIndices::agree(std::string_view a, std::string_view b) {
  const auto whose = [](std::string_view text) { return text.substr(0, text.find(':')); };
  return a.empty() || b.empty() || a == b || whose(a) != whose(b);
}

}  // namespace penstock::data
