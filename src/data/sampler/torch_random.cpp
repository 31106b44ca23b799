#include "data/sampler/torch_random.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace penstock::data {

namespace {
constexpr std::int64_t kWideRange = std::int64_t{1} << 28;
}  // namespace

template <class T>
void randperm(std::span<T> out, Generator& generator) {
  if (out.size() >= static_cast<std::size_t>(kLargePermutation)) return randperm_inside_out(out, generator);
  std::iota(out.begin(), out.end(), T{0});
  permute(out, 0, out.size(), generator);
}

template <class T>
void permute(std::span<T> out, std::size_t begin, std::size_t end, Generator& generator) {
  const auto count = static_cast<std::uint32_t>(out.size());
  const auto last = static_cast<std::uint32_t>(std::min(end, std::max<std::size_t>(out.size(), 1) - 1));
  // Where a number goes does not depend on the swaps before it: known ahead, memory far apart is fetched in time.
  std::array<std::uint32_t, 64> others{};
  for (auto done = static_cast<std::uint32_t>(begin); done < last;) {
    const std::uint32_t until = std::min(done + static_cast<std::uint32_t>(others.size()), last);
    for (std::uint32_t i = done; i < until; ++i) {
      others[i - done] = i + static_cast<std::uint32_t>(generator.random() % (count - i));
      __builtin_prefetch(&out[others[i - done]], 1);
    }
    for (std::uint32_t i = done; i < until; ++i) std::swap(out[i], out[others[i - done]]);
    done = until;
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
template void permute(std::span<std::uint32_t>, std::size_t, std::size_t, Generator&);
template void permute(std::span<std::int64_t>, std::size_t, std::size_t, Generator&);
template void randperm_inside_out(std::span<std::uint32_t>, Generator&);
template void randperm_inside_out(std::span<std::int64_t>, Generator&);
template void randint(std::int64_t, std::span<std::uint32_t>, Generator&);
template void randint(std::int64_t, std::span<std::int64_t>, Generator&);

}  // namespace penstock::data
