#include "data/random.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace penstock::data {

namespace {
constexpr std::int64_t kLargePermutation = std::numeric_limits<std::uint32_t>::max() / 20;
constexpr std::int64_t kWideRange = std::int64_t{1} << 28;
}  // namespace

std::vector<std::int64_t> randperm(std::int64_t n, Generator& generator) {
  if (n >= kLargePermutation) return randperm_inside_out(n, generator);
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), std::int64_t{0});
  const auto count = static_cast<std::uint32_t>(n);
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
  return out;
}

std::vector<std::int64_t> randperm_inside_out(std::int64_t n, Generator& generator) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const std::uint64_t z = generator.random64() % (i + 1);
    out[i] = out[z];
    out[z] = static_cast<std::int64_t>(i);
  }
  return out;
}

void randint(std::int64_t high, std::span<std::int64_t> out, Generator& generator) {
  const auto range = static_cast<std::uint64_t>(high);
  for (std::int64_t& value : out) {
    const std::uint64_t bits = high >= kWideRange ? generator.random64() : generator.random();
    value = static_cast<std::int64_t>(bits % range);
  }
}

}  // namespace penstock::data
