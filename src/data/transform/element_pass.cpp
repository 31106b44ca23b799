// Runs a planned pass. The elements are walked in chunks that fit into the first cache. A chunk is gathered from the
// source, goes through all steps between two small buffers, and is put into the target, so that memory is read and
// written once however many steps there are. Where runs are short (the three channels of a pixel), a chunk has many of
// them, because each step costs a call.

#include "data/transform/element_pass.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/convert.h"
#include "ops/copy_plane.h"
#include "ops/overflow.h"

namespace penstock::data {
namespace {

/// Elements at a time: what two buffers of the widest type take stays in the first cache.
constexpr std::int64_t kChunk = 512;
constexpr std::size_t kWidest = 16;

/// Where the elements of a chunk lie in one view: rows of runs. Steps are counted in elements.
struct Plane {
  std::int64_t rows = 1;
  std::int64_t row_step = 0;
  std::int64_t count = 0;  ///< elements of a run
  std::int64_t step = 0;

  std::int64_t size() const noexcept { return rows * count; }
  bool dense() const noexcept { return (step == 1 || count == 1) && (row_step == count || rows == 1); }
  bool single() const noexcept { return (step == 0 || count == 1) && (row_step == 0 || rows == 1); }
  Plane packed() const noexcept { return {.rows = rows, .row_step = count, .count = count, .step = 1}; }
};

/// Copies elements from where one view has them to where the other has them.
void copy_between(const std::byte* from, const Plane& there, std::byte* to, const Plane& here,
                  std::size_t width) noexcept {
  const auto bytes = static_cast<std::int64_t>(width);
  const ops::Dim rows = {there.rows, there.row_step * bytes, here.row_step * bytes};
  const ops::Dim run = {there.count, there.step * bytes, here.step * bytes};
  ops::copy_plane(width, rows, run, from, to);
}

/// How much is done at once.
struct Size {
  std::int64_t rows = 1;
  std::int64_t count = 0;
};

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

  std::optional<Walk> draw(const std::uint64_t* keys) const override {
    if (!plan_.random) return std::nullopt;
    Draws draws(keys);
    return walk_of(geometry_of(plan_, &draws));
  }

  std::optional<Refused> run(const std::byte* from, std::byte* to, const Walk* drawn) const noexcept override {
    if (plan_.padded) fill(to);
    return walk_over(drawn != nullptr ? *drawn : fixed_, from, to);
  }

  std::string explain(const Refused& refused) const override {
    const PassStep& step = plan_.steps[refused.step];
    return ops::overflow_message(step.from, refused.value, step.to);
  }

 private:
  Walk walk_of(Geometry geometry) const {
    geometry.views.push_back(plan_.target);
    return Walk(geometry.shape, geometry.views);
  }

  void fill(std::byte* to) const noexcept {
    const auto all = static_cast<std::size_t>(plan_.output.nbytes);
    if (all == 0) return;
    std::memcpy(to, plan_.padding.data(), out_width_);
    // Doubles what is filled already.
    for (std::size_t done = out_width_; done < all; done += std::min(done, all - done)) {
      std::memcpy(to + done, to, std::min(done, all - done));
    }
  }

  std::optional<Refused> walk_over(const Walk& walk, const std::byte* from, std::byte* to) const noexcept {
    std::optional<Refused> refused;
    Chunk chunk;
    const Size most = most_at_once(walk);
    walk.for_each_plane([&](const Walk::Places& places) {
      for (std::int64_t row = 0; row < walk.rows(); row += most.rows) {
        for (std::int64_t first = 0; first < walk.run() && !refused; first += most.count) {
          const Size size = {std::min(most.rows, walk.rows() - row), std::min(most.count, walk.run() - first)};
          Walk::Places here = places;
          for (std::size_t v = 0; v <= target(); ++v) here[v] += row * walk.row_step(v) + first * walk.step(v);
          refused = run_chunk(walk, here, from, to, size, chunk);
        }
      }
      return !refused;
    });
    return refused;
  }

  /// The number of the view that says where the results go.
  std::size_t target() const noexcept { return plan_.parameters.size() + 1; }

  static Plane plane(const Walk& walk, std::size_t view, const Size& size) noexcept {
    return {.rows = size.rows, .row_step = walk.row_step(view), .count = size.count, .step = walk.step(view)};
  }

  /// Whole runs where they go from the source into their places with no chunk in between, else as much as a chunk has
  /// room for.
  Size most_at_once(const Walk& walk) const noexcept {
    if (plan_.steps.empty()) return {walk.rows(), walk.run()};
    if (walk.run() < kChunk)
      return {std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(1, walk.run())), walk.run()};
    return {1, goes_directly(walk) ? walk.run() : kChunk};
  }

  bool goes_directly(const Walk& walk) const noexcept {
    if (walk.step(0) != 1 || walk.step(target()) != 1 || plan_.steps.size() > 1) return false;
    const auto dense = [&](const Parameter& parameter) {
      const std::int64_t step = walk.step(parameter.view);
      return step == 0 || step == 1;
    };
    return std::all_of(plan_.parameters.begin(), plan_.parameters.end(), dense);
  }

  std::optional<Refused> run_chunk(const Walk& walk, const Walk::Places& places, const std::byte* from, std::byte* to,
                                   const Size& size, Chunk& chunk) const noexcept {
    const Plane there = plane(walk, 0, size);
    const Plane here = plane(walk, target(), size);
    const std::byte* current = from + places[0] * static_cast<std::int64_t>(width_);
    std::byte* const result = to + places[target()] * static_cast<std::int64_t>(out_width_);
    if (plan_.steps.empty()) {
      copy_between(current, there, result, here, width_);
      return std::nullopt;
    }
    if (!there.dense()) {
      std::byte* const taken = chunk.other();
      copy_between(current, there, taken, there.packed(), width_);
      current = taken;
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const PassStep& step = plan_.steps[s];
      std::byte* const next = s + 1 == plan_.steps.size() && here.dense() ? result : chunk.other();
      if (step.strict) {
        if (auto refused = refusal(step, current, there.size())) {
          refused->step = static_cast<std::uint32_t>(s);
          return refused;
        }
      }
      act(walk, places, step, current, next, size, chunk);
      current = next;
    }
    if (!here.dense()) copy_between(current, here.packed(), result, here, out_width_);
    return std::nullopt;
  }

  static std::optional<Refused> refusal(const PassStep& step, const std::byte* elements, std::int64_t count) noexcept {
    const auto all = static_cast<std::size_t>(count);
    const std::size_t found = ops::find_overflow(step.from, elements, step.to, all);
    if (found == all) return std::nullopt;
    return Refused{.value = ops::first_part(step.from, elements + found * DType(step.from).itemsize())};
  }

  void act(const Walk& walk, const Walk::Places& places, const PassStep& step, const std::byte* from, std::byte* to,
           const Size& size, Chunk& chunk) const noexcept {
    const auto all = static_cast<std::size_t>(size.rows * size.count);
    if (step.loop == nullptr) return ops::convert(step.from, from, step.to, to, all);
    if (step.parameter < 0) return step.loop(from, to, all, step.operands);
    const Parameter& parameter = plan_.parameters[static_cast<std::size_t>(step.parameter)];
    const Plane values = plane(walk, parameter.view, size);
    const std::int64_t place = places[parameter.view] * static_cast<std::int64_t>(parameter.width);
    Operands operands = step.operands;
    operands.mean = parameter.mean.data() + place;
    operands.std = parameter.std.data() + place;
    operands.single = values.single();
    if (!operands.single && !values.dense()) {
      copy_between(operands.mean, values, chunk.mean.data(), values.packed(), parameter.width);
      copy_between(operands.std, values, chunk.std.data(), values.packed(), parameter.width);
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
