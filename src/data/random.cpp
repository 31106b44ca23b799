#include "data/random.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace penstock::data {

namespace {
constexpr std::size_t kLargePermutation = std::numeric_limits<std::uint32_t>::max() / 20;
constexpr std::int64_t kWideRange = std::int64_t{1} << 28;
}  // namespace

template <class T>
void randperm(std::span<T> out, Generator& generator) {
  if (out.size() >= kLargePermutation) return randperm_inside_out(out, generator);
  std::iota(out.begin(), out.end(), T{0});
  const auto count = static_cast<std::uint32_t>(out.size());
  // Where a number goes does not depend on the swaps before it: known ahead, memory far apart is fetched in time.
  std::array<std::uint32_t, 64> others{};
  for (std::uint32_t done = 0; done + 1 < count;) {
    const std::uint32_t end = std::min(done + static_cast<std::uint32_t>(others.size()), count - 1);
    for (std::uint32_t i = done; i < end; ++i) {
      others[i - done] = i + static_cast<std::uint32_t>(generator.random() % (count - i));
      __builtin_prefetch(&out[others[i - done]], 1);
    }
    for (std::uint32_t i = done; i < end; ++i) std::swap(out[i], out[others[i - done]]);
    done = end;
  }
}

template <class T>
void randperm_inside_out(std::span<T> out, Generator& generator) {
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const std::uint64_t z = generator.random64() % (i + 1);
    out[i] = out[z];
    out[z] = static_cast<T>(i);
  }
}

template <class T>
void randint(std::int64_t high, std::span<T> out, Generator& generator) {
  const auto range = static_cast<std::uint64_t>(high);
  for (T& value : out) {
    const std::uint64_t bits = high >= kWideRange ? generator.random64() : generator.random();
    value = static_cast<T>(bits % range);
  }
}

template void randperm(std::span<std::uint32_t>, Generator&);
template void randperm(std::span<std::int64_t>, Generator&);
template void randperm_inside_out(std::span<std::uint32_t>, Generator&);
template void randperm_inside_out(std::span<std::int64_t>, Generator&);
template void randint(std::int64_t, std::span<std::uint32_t>, Generator&);
template void randint(std::int64_t, std::span<std::int64_t>, Generator&);

}  // namespace penstock::data
