// Runs a planned pass. The elements are walked in chunks that fit into the first cache. A chunk is gathered from the
// source, goes through all steps between two small buffers, and is put into the target, so that memory is read and
// written once however many steps there are.

#include "data/transform/element_pass.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/convert.h"
#include "ops/overflow.h"

namespace penstock::data {
namespace {

/// Elements at a time: what two buffers of the widest type take stays in the first cache.
constexpr std::int64_t kChunk = 512;
constexpr std::size_t kWidest = 16;

template <std::size_t kWidth>
void take_strided(const std::byte* from, std::int64_t step, std::byte* to, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * kWidth, from + i * step * kWidth, kWidth);
}

/// Gathers `count` elements, `step` elements apart, to lie one behind the other.
void take(const std::byte* from, std::int64_t step, std::byte* to, std::int64_t count, std::size_t width) noexcept {
  const auto bytes = static_cast<std::int64_t>(width);
  switch (width) {
    case 1:
      return take_strided<1>(from, step, to, count);
    case 2:
      return take_strided<2>(from, step, to, count);
    case 4:
      return take_strided<4>(from, step, to, count);
    case 8:
      return take_strided<8>(from, step, to, count);
    default:
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * bytes, from + i * step * bytes, width);
  }
}

/// The other way round.
void put(const std::byte* from, std::byte* to, std::int64_t step, std::int64_t count, std::size_t width) noexcept {
  const auto bytes = static_cast<std::int64_t>(width);
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * step * bytes, from + i * bytes, width);
}

/// The memory of one walk. On the stack: a walk may be abandoned.
struct Chunk {
  alignas(64) std::array<std::byte, kChunk * kWidest> buffers[2];
  alignas(64) std::array<std::byte, kChunk * 8> mean;
  alignas(64) std::array<std::byte, kChunk * 8> std;
  unsigned next = 0;

  std::byte* other() noexcept { return buffers[next ^= 1U].data(); }
};

class ElementPass final : public Pass {
 public:
  explicit ElementPass(ElementPlan plan)
      : plan_(std::move(plan)),
        width_(plan_.input.dtype.itemsize()),
        out_width_(plan_.output.dtype.itemsize()),
        fixed_(walk_of(plan_.geometry)) {}

  const TensorLayout& output() const noexcept override { return plan_.output; }
  bool random() const noexcept override { return plan_.random; }

  std::optional<Refused> run(const std::byte* from, std::byte* to, std::uint64_t key) const override {
    if (plan_.padded) fill(to);
    if (!plan_.random) return walk_over(fixed_, from, to);
    Draws draws(key);
    return walk_over(walk_of(geometry_of(plan_, &draws)), from, to);
  }

  std::string explain(const Refused& refused) const override {
    const Step& step = plan_.steps[refused.step];
    return ops::overflow_message(step.from, refused.value, step.to);
  }

 private:
  Walk walk_of(Geometry geometry) const {
    geometry.views.push_back(plan_.target);
    return Walk(geometry.shape, geometry.views);
  }

  void fill(std::byte* to) const noexcept {
    const auto count = static_cast<std::int64_t>(plan_.output.nbytes / out_width_);
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * static_cast<std::int64_t>(out_width_), plan_.padding.data(), out_width_);
    }
  }

  std::optional<Refused> walk_over(const Walk& walk, const std::byte* from, std::byte* to) const noexcept {
    std::optional<Refused> refused;
    const std::size_t target = plan_.parameters.size() + 1;
    Chunk chunk;
    const std::int64_t most = goes_directly(walk) ? walk.run() : kChunk;
    walk.for_each([&](Walk::Places places) {
      for (std::int64_t first = 0; first < walk.run() && !refused; first += most) {
        const std::int64_t count = std::min(most, walk.run() - first);
        Walk::Places here = places;
        for (std::size_t v = 0; v <= target; ++v) here[v] += first * walk.step(v);
        refused = run_chunk(walk, here, from, to, count, chunk);
      }
      return !refused;
    });
    return refused;
  }

  /// Whether elements go from the source into their places by one loop, with no chunk in between.
  bool goes_directly(const Walk& walk) const noexcept {
    if (walk.step(0) != 1 || walk.step(plan_.parameters.size() + 1) != 1 || plan_.steps.size() > 1) return false;
    const auto dense = [&](const Parameter& parameter) {
      const std::int64_t step = walk.step(parameter.view);
      return step == 0 || step == 1;
    };
    return std::all_of(plan_.parameters.begin(), plan_.parameters.end(), dense);
  }

  std::optional<Refused> run_chunk(const Walk& walk, const Walk::Places& places, const std::byte* from, std::byte* to,
                                   std::int64_t count, Chunk& chunk) const noexcept {
    const std::size_t target = plan_.parameters.size() + 1;
    std::byte* const result = to + places[target] * static_cast<std::int64_t>(out_width_);
    const bool dense = walk.step(target) == 1 || count == 1;
    const std::byte* current = from + places[0] * static_cast<std::int64_t>(width_);
    if (walk.step(0) != 1 && count > 1) {
      std::byte* const taken = plan_.steps.empty() && dense ? result : chunk.other();
      take(current, walk.step(0), taken, count, width_);
      current = taken;
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      std::byte* const next = s + 1 == plan_.steps.size() && dense ? result : chunk.other();
      if (step.strict) {
        if (auto refused = refusal(step, current, count)) {
          refused->step = static_cast<std::uint32_t>(s);
          return refused;
        }
      }
      act(walk, places, step, current, next, count, chunk);
      current = next;
    }
    if (current == result) return std::nullopt;
    if (dense) {
      std::memcpy(result, current, static_cast<std::size_t>(count) * out_width_);
    } else {
      put(current, result, walk.step(target), count, out_width_);
    }
    return std::nullopt;
  }

  static std::optional<Refused> refusal(const Step& step, const std::byte* elements, std::int64_t count) noexcept {
    const auto all = static_cast<std::size_t>(count);
    const std::size_t found = ops::find_overflow(step.from, elements, step.to, all);
    if (found == all) return std::nullopt;
    return Refused{.value = ops::first_part(step.from, elements + found * DType(step.from).itemsize())};
  }

  void act(const Walk& walk, const Walk::Places& places, const Step& step, const std::byte* from, std::byte* to,
           std::int64_t count, Chunk& chunk) const noexcept {
    const auto all = static_cast<std::size_t>(count);
    if (step.loop == nullptr) return ops::convert(step.from, from, step.to, to, all);
    if (step.parameter < 0) return step.loop(from, to, all, step.operands);
    const Parameter& parameter = plan_.parameters[static_cast<std::size_t>(step.parameter)];
    const std::int64_t apart = walk.step(parameter.view);
    const std::int64_t place = places[parameter.view] * static_cast<std::int64_t>(parameter.width);
    Operands operands = step.operands;
    operands.mean = parameter.mean.data() + place;
    operands.std = parameter.std.data() + place;
    operands.single = apart == 0 || count == 1;
    if (!operands.single && apart != 1) {
      take(operands.mean, apart, chunk.mean.data(), count, parameter.width);
      take(operands.std, apart, chunk.std.data(), count, parameter.width);
      operands.mean = chunk.mean.data();
      operands.std = chunk.std.data();
    }
    step.loop(from, to, all, operands);
  }

  ElementPlan plan_;
  std::size_t width_;
  std::size_t out_width_;
  Walk fixed_;
};

}  // namespace

std::unique_ptr<const Pass> element_pass(ElementPlan plan) { return std::make_unique<ElementPass>(std::move(plan)); }

}  // namespace penstock::data
