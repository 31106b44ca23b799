#include "core/shared_walk.h"

#include "core/checked.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock::core {
namespace {

constexpr std::uint64_t kBytesOfItem = 64;
constexpr std::string_view kWhat = "the size of the content";

}  // namespace

std::uint64_t SharedWalk::cost_of(std::uint64_t items, std::uint64_t text) {
  const std::uint64_t parts = checked_add(items, std::uint64_t{1}, kWhat);
  return checked_add(checked_mul(parts, kBytesOfItem, kWhat), text, kWhat);
}

void SharedWalk::count(const void* part, std::uint64_t cost) {
  all_ = checked_add(all_, cost, kWhat);
  if (known_.insert(part).second) once_ += cost;
  if (all_ > kAlways && all_ / kGrowth > once_) {
    throw Error(
        ErrorCode::kLimit,
        core::format("the same parts are held so often that more than {} places lead to them; {}", items_, advice_));
  }
}

}  // namespace penstock::core
