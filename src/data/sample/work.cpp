#include "data/sample/work.h"

#include "ops/philox.h"
#include "penstock/error.h"

namespace penstock::data {

std::uint64_t CallContext::key_of(std::int64_t index) const noexcept {
  const std::uint64_t of_epoch = ops::philox(epoch_seed.seed, epoch_seed.epoch).high();
  return ops::philox(of_epoch, static_cast<std::uint64_t>(index)).high();
}

void CallContext::check_cancelled() const {
  if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
    throw Error(ErrorCode::kCancelled, "the loader was stopped");
  }
}

}  // namespace penstock::data
