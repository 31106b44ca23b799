#include "simulator/ptx/kernels.h"

#include <algorithm>
#include <numeric>

namespace penstock::simulator::ptx {

extern const Translation kModule_arithmetic;
extern const Translation kModule_matmul;
extern const Translation kModule_move;
extern const Translation kModule_reduce;

namespace {

constexpr std::array kTranslations = {&kModule_arithmetic, &kModule_matmul, &kModule_move, &kModule_reduce};

/// The i-th thread to run of `count`: a step that shares no factor with `count` comes past each of them once.
class Sequence {
 public:
  Sequence(Order order, std::uint64_t count) : order_(order), count_(count) {
    constexpr std::uint64_t kSteps[] = {2654435761, 40503, 7919, 101, 13, 7, 5, 3, 2};
    const auto* const found =
        std::ranges::find_if(kSteps, [&](std::uint64_t step) { return step < count && std::gcd(step, count) == 1; });
    step_ = found != std::end(kSteps) ? *found : 1;
  }
  std::uint64_t operator[](std::uint64_t i) const noexcept {
    switch (order_) {
      case Order::kForward:
        return i;
      case Order::kBackward:
        return count_ - 1 - i;
      case Order::kShuffled:
        return (i * step_ + count_ / 2) % count_;
    }
    return i;
  }

 private:
  Order order_;
  std::uint64_t count_;
  std::uint64_t step_ = 1;
};

Dimensions at(const Dimensions& size, std::uint64_t index) {
  const auto part = [&index](std::uint32_t n) {
    const auto place = static_cast<std::uint32_t>(index % n);
    index /= n;
    return place;
  };
  const std::uint32_t x = part(size.x);
  const std::uint32_t y = part(size.y);
  return {x, y, part(size.z)};
}

}  // namespace

std::span<const Translation* const> translations() noexcept { return kTranslations; }

const Kernel* find_kernel(std::string_view name) noexcept {
  for (const Translation* const translation : kTranslations) {
    for (const Kernel& kernel : translation->kernels) {
      if (kernel.name == name) return &kernel;
    }
  }
  return nullptr;
}

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

void run(const Kernel& kernel, const Launch& launch, std::span<const std::byte> parameters,
         std::span<const Range> global) {
  Machine machine(global, parameters);
  machine.set_constants(kernel.constants);
  const std::uint64_t in_block = launch.block.count();
  const std::uint64_t count = in_block * launch.grid.count();
  const Sequence sequence(launch.order, count);
  Thread thread{{}, launch.block, {}, launch.grid};
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = sequence[i];
    thread.tid = at(launch.block, number % in_block);
    thread.ctaid = at(launch.grid, number / in_block);
    machine.begin_thread(static_cast<std::uint32_t>(number));
    kernel.run(thread, machine);
  }
}

}  // namespace penstock::simulator::ptx
