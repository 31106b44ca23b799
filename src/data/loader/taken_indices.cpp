#include "data/loader/taken_indices.h"

#include "core/format.h"
#include "ops/philox.h"
#include "penstock/error.h"

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

TakenIndices::TakenIndices(const BatchSampler& batches, const std::optional<Ranks>& ranks) {
  if (batches.kind() != "own") return;
  if (ranks) rank_ = ranks->rank;
  if (!ranks && batches.replicas() == 1) rank_ = own_rank();  // else the sampler deals out, and does not say to whom
}

std::string TakenIndices::of(const std::shared_ptr<const BatchOrder>& order, std::int64_t count) const {
  if (rank_ < 0 || !order || count == 0 || count > order->size()) return {};
  if (order_.lock() != order || count < count_) {
    order_ = order;
    count_ = 0;
    sum_ = 0;
  }
  for (; count_ < count; ++count_) {
    const std::vector<std::int64_t> batch = (*order)[count_];
    sum_ = ops::philox(sum_, batch.size()).low();
    for (const std::int64_t index : batch) sum_ = ops::philox(sum_, static_cast<std::uint64_t>(index)).low();
  }
  return core::format("{}:{:016x}", rank_, sum_);
}

bool TakenIndices::agree(std::string_view a, std::string_view b) {
  const auto rank = [](std::string_view text) { return text.substr(0, text.find(':')); };
  return a.empty() || b.empty() || a == b || rank(a) != rank(b);
}

}  // namespace penstock::data
