// Plans one pass over a tensor. It reads ops one by one and notes what each of them does: moves change views
// (geometry.h), arithmetic adds steps to be done on each chunk of elements (element_pass.cpp). Arithmetic is done in
// the type of the tensor, as in PyTorch. float16 and bfloat16 are computed in float32 and rounded after each step,
// because PyTorch gives these bits.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "data/sample/strides.h"
#include "data/transform/element_pass.h"
#include "ops/convert.h"
#include "ops/overflow.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

using enum DType::Code;

/// Where the channels lie innermost ("height, width, channel"), the mean changes from element to element, and a walk
/// would have very short runs (three elements for an image). So the values are repeated for this many elements, and the
/// walk has long runs.
constexpr std::int64_t kWrittenOut = 4096;
/// The other two views of a walk are those of the source and of the target.
constexpr std::size_t kMaxParameters = Walk::kMaxViews - 2;

/// The values in the type that the step computes in. They are rounded to the tensor's type first, because PyTorch does
/// so.
std::vector<std::byte> stored(const std::vector<double>& values, DType::Code type, DType::Code computed_in) {
  std::vector<std::byte> rounded(values.size() * DType(type).itemsize());
  ops::convert(kFloat64, reinterpret_cast<const std::byte*>(values.data()), type, rounded.data(), values.size());
  std::vector<std::byte> out(values.size() * DType(computed_in).itemsize());
  ops::convert(type, rounded.data(), computed_in, out.data(), values.size());
  return out;
}

std::array<std::byte, 8> constant(double value, DType::Code type, DType::Code computed_in) {
  const std::vector<std::byte> bytes = stored({value}, type, computed_in);
  std::array<std::byte, 8> out = {};
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

class Planner {
 public:
  Planner(const TensorLayout& input, bool keeps_order)
      : type_(input.dtype),
        keeps_order_(keeps_order),
        requires_grad_(input.requires_grad),
        plan_{.input = input, .output = input, .geometry = Geometry(input.shape, input.strides)} {
    if (!input.dtype.is_numeric()) {
      throw Error(ErrorCode::kDTypeMismatch,
                  core::format("transforms are for numbers, found elements of type {}", input.dtype.name()));
    }
  }

  /// Whether the op can be part of this pass, behind the ops that were added before.
  bool takes(const Op& op) const {
    if (plan_.padded || std::holds_alternative<OneHotOp>(op)) return false;
    return !std::holds_alternative<NormalizeOp>(op) || plan_.parameters.size() < kMaxParameters;
  }

  void add(const Op& op) {
    std::visit([&](const auto& one) { add(one, op); }, op);
  }

  ElementPlan finish() {
    join_steps();
    if (!plan_.padded) {
      const Shape shape = plan_.geometry.as_shape();
      set_output(shape, keeps_order_ ? dense_strides(shape, strides_of_source()) : shape.contiguous_strides());
    }
    plan_.output.requires_grad = requires_grad_;
    if (keeps_order_) walk_as_target_lies();
    if (!plan_.random) {
      for (Parameter& parameter : plan_.parameters) write_out(parameter);
    }
    return std::move(plan_);
  }

 private:
  /// How the source would lie in front of the next step: torch flips in a copy.
  Strides strides_of_source() const {
    Strides out = plan_.geometry.as_shape();
    const std::vector<std::int64_t>& steps = plan_.geometry.views.front().steps;
    for (std::size_t d = 0; d < steps.size(); ++d) out[d] = std::abs(steps[d]);
    return out;
  }

  void set_output(const Shape& shape, const Strides& strides) {
    plan_.output = {type_, shape, strides};
    plan_.target = {.base = 0, .steps = {strides.begin(), strides.end()}};
  }

  /// Puts the dimensions of all views in the order in which they lie in the result, so that runs are long.
  void walk_as_target_lies() {
    PermuteOp order;
    for (std::size_t d = 0; d < plan_.target.steps.size(); ++d) order.dims.push_back(static_cast<std::int64_t>(d));
    const auto step = [&](std::int64_t dim) { return plan_.target.steps[static_cast<std::size_t>(dim)]; };
    const auto lies_outside = [&](std::int64_t a, std::int64_t b) { return step(a) > step(b); };
    if (std::is_sorted(order.dims.begin(), order.dims.end(), lies_outside)) return;
    std::stable_sort(order.dims.begin(), order.dims.end(), lies_outside);
    plan_.target.permute({order.dims.begin(), order.dims.end()});
    plan_.geometry.permute(order);
    plan_.moves.emplace_back(std::move(order));
  }

  void add(const CastOp& op, const Op&) {
    if (!op.dtype.is_numeric()) {
      throw Error(ErrorCode::kDTypeMismatch, core::format("cast to {}: only numbers are converted", op.dtype.name()));
    }
    if (op.dtype == type_) return;
    convert(type_.code(), op.dtype.code(), op.strict);
    type_ = op.dtype;
    requires_grad_ = requires_grad_ && (type_.is_floating() || type_.is_complex());
  }

  void add(const ScaleOp& op, const Op& of) {
    const DType::Code inner = computed_in(of);
    PassStep step{.from = inner, .to = inner, .loop = multiply_loop(inner)};
    step.operands.low = constant(op.factor, inner, inner);  // PyTorch does not round it to a half
    arithmetic(step);
  }

  void add(const NormalizeOp& op, const Op& of) {
    const DType::Code inner = computed_in(of);
    const std::size_t count = std::max(op.mean.size(), op.std.size());
    check_channels(op, count);
    Parameter parameter{.mean = stored(repeated(op.mean, count), type_.code(), inner),
                        .std = stored(repeated(op.std, count), type_.code(), inner),
                        .width = DType(inner).itemsize(),
                        .view = plan_.geometry.add_parameter(op.dim, count)};
    plan_.moves.emplace_back(op);
    plan_.parameters.push_back(std::move(parameter));
    PassStep step{.from = inner, .to = inner, .loop = normalize_loop(inner)};
    step.parameter = static_cast<std::int32_t>(plan_.parameters.size() - 1);
    if (inner == type_.code()) return arithmetic(step);
    step.loop = subtract_loop(inner);
    arithmetic(step);
    step.loop = divide_loop(inner);
    arithmetic(step);
  }

  void add(const ClampOp& op, const Op& of) {
    const DType::Code inner = type_.is_integer() ? type_.code() : computed_in(of);
    for (const double bound : {op.low, op.high}) {
      if (!type_.is_integer() || representable(bound)) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("clamp to [{}, {}] of {}: {} is not a number of that type; cast first", op.low, op.high,
                               type_.name(), bound));
    }
    PassStep step{.from = inner, .to = inner, .loop = clamp_loop(inner)};
    step.operands.low = constant(op.low, type_.code(), inner);
    step.operands.high = constant(op.high, type_.code(), inner);
    arithmetic(step);
  }

  void add(const PermuteOp& op, const Op& of) {
    plan_.geometry.permute(op);
    plan_.moves.push_back(of);
  }

  void add(const CropOp& op, const Op& of) {
    plan_.geometry.crop(op, nullptr);
    plan_.moves.push_back(of);
    plan_.random |= is_random(of);
  }

  void add(const FlipOp& op, const Op& of) {
    plan_.geometry.flip(op, nullptr);
    plan_.moves.push_back(of);
    plan_.random |= is_random(of);
  }

  void add(const PadOp& op, const Op&) {
    if (!representable(op.value)) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("pad with {}: that is not a number of type {}", op.value, type_.name()));
    }
    const std::vector<std::size_t> dims = checked_dims(op.dims, op.before.size(), plan_.geometry.shape, "pad");
    std::vector<std::int64_t> shape = plan_.geometry.shape;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const auto more = core::try_add(op.before[i], op.after[i]);
      const auto size = more ? core::try_add(shape[dims[i]], *more) : std::nullopt;
      if (!size) {
        throw Error(ErrorCode::kInvalidArgument,
                    core::format("pad by {} and {}: the size of dimension {} would not fit in 64 bits", op.before[i],
                                 op.after[i], dims[i]));
      }
      shape[dims[i]] = *size;
    }
    const Shape padded = Shape(std::span<const std::int64_t>(shape));
    const bool channels_last = keeps_order_ && is_channels_last(plan_.geometry.as_shape(), strides_of_source());
    set_output(padded, channels_last ? channels_last_strides(padded) : padded.contiguous_strides());
    for (std::size_t i = 0; i < dims.size(); ++i) plan_.target.begin_at(dims[i], op.before[i]);
    ops::convert(kFloat64, reinterpret_cast<const std::byte*>(&op.value), type_.code(), plan_.padding.data(), 1);
    plan_.padded = true;
  }

  void add(const OneHotOp&, const Op&) {}  // a pass of its own

  void convert(DType::Code from, DType::Code to, bool strict) {
    plan_.steps.push_back({.from = from, .to = to, .strict = strict});
  }

  /// Adds the step, between a conversion to the type that it computes in and one back.
  void arithmetic(const PassStep& step) {
    const DType::Code stored_as = type_.code();
    if (step.from != stored_as) convert(stored_as, step.from, false);
    plan_.steps.push_back(step);
    if (step.to != stored_as) convert(step.to, stored_as, false);
  }

  DType::Code computed_in(const Op& op) const {
    switch (type_.code()) {
      case kFloat32:
      case kFloat16:
      case kBFloat16:
        return kFloat32;
      case kFloat64:
        return kFloat64;
      default:
        throw Error(ErrorCode::kDTypeMismatch,
                    core::format("{} wants float16, bfloat16, float32 or float64, found {}; cast to one of them first",
                                 name_of(op), type_.name()));
    }
  }

  /// Whether the tensor's type can hold this number: an integer type exactly, a floating type without overflow.
  bool representable(double value) const {
    if (type_.is_integer() && value != std::trunc(value)) return false;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    return ops::find_overflow(kFloat64, bytes, type_.code(), 1) == 1;
  }

  void check_channels(const NormalizeOp& op, std::size_t count) const {
    if (count == 1) return;
    const std::size_t dim = checked_dim(op.dim, plan_.geometry.shape, "normalize");
    if (static_cast<std::size_t>(plan_.geometry.shape[dim]) == count) return;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("normalize has {} channels, but dimension {} of a tensor of shape {} has {}", count, dim,
                             plan_.geometry.as_shape().to_string(), plan_.geometry.shape[dim]));
  }

  static std::vector<double> repeated(const std::vector<double>& values, std::size_t count) {
    return values.size() == count ? values : std::vector<double>(count, values.at(0));
  }

  /// Replaces two or more of the steps "cast to float32", "scale" and "normalize" that follow each other by one step,
  /// because one loop reads and writes the elements once. Without a scale the factor is 1, which changes no value.
  void join_steps() {
    std::vector<PassStep>& steps = plan_.steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::size_t next = i;
      const auto take = [&](bool is) -> const PassStep* { return is ? &steps[next++] : nullptr; };
      const auto is = [&](Loop loop) { return next < steps.size() && steps[next].loop == loop; };
      const PassStep* const cast = take(is(nullptr) && steps[i].to == kFloat32 && !steps[i].strict);
      const PassStep* const scale = take(is(multiply_loop(kFloat32)));
      const PassStep* const normalize = take(is(normalize_loop(kFloat32)));
      if (next - i < 2) continue;
      const DType::Code from = cast != nullptr ? cast->from : kFloat32;
      const Loop loop = normalize != nullptr ? normalize_to_float_loop(from) : scale_to_float_loop(from);
      if (loop == nullptr) continue;
      PassStep joined{.from = from, .to = kFloat32, .loop = loop};
      joined.operands.low = scale != nullptr ? scale->operands.low : constant(1, kFloat32, kFloat32);
      if (normalize != nullptr) joined.parameter = normalize->parameter;
      steps[i] = joined;
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  steps.begin() + static_cast<std::ptrdiff_t>(next));
    }
  }

  void write_out(Parameter& parameter) {
    const std::vector<std::int64_t>& shape = plan_.geometry.shape;
    View& view = plan_.geometry.views[parameter.view];
    std::size_t first = shape.size();
    std::int64_t count = 1;
    while (first > 0 && shape[first - 1] != 0 && count <= kWrittenOut / shape[first - 1]) count *= shape[--first];
    const auto changes = [&](std::size_t dim) { return shape[dim] != 1 && view.steps[dim] != 0; };
    std::size_t innermost = shape.size();
    while (innermost > 0 && shape[innermost - 1] == 1) --innermost;
    if (innermost == 0 || !changes(innermost - 1)) return;
    for (std::size_t dim = 0; dim < first; ++dim) {
      if (changes(dim)) return;  // the values would differ from one stretch of kWrittenOut elements to the next
    }
    const std::vector<std::int64_t> kept(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
    const Strides dense = Shape(std::span<const std::int64_t>(kept)).contiguous_strides();
    const View within{.base = view.base,
                      .steps = {view.steps.begin() + static_cast<std::ptrdiff_t>(first), view.steps.end()}};
    parameter.mean = written_out(parameter.mean, parameter.width, kept, within, count);
    parameter.std = written_out(parameter.std, parameter.width, kept, within, count);
    view.base = 0;
    std::copy(dense.begin(), dense.end(), view.steps.begin() + static_cast<std::ptrdiff_t>(first));
  }

  static std::vector<std::byte> written_out(const std::vector<std::byte>& values, std::size_t width,
                                            const std::vector<std::int64_t>& shape, const View& view,
                                            std::int64_t count) {
    std::vector<std::byte> out;
    out.reserve(static_cast<std::size_t>(count) * width);
    const Walk walk(shape, std::span(&view, 1));
    walk.for_each([&](const Walk::Places& places) {
      for (std::int64_t i = 0; i < walk.run(); ++i) {
        const auto place = static_cast<std::size_t>(places[0] + i * walk.step(0)) * width;
        out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.begin() + static_cast<std::ptrdiff_t>(place + width));
      }
      return true;
    });
    return out;
  }

  DType type_;  ///< of the elements after the ops that were added
  bool keeps_order_;
  bool requires_grad_;
  ElementPlan plan_;
};

/// Changes the views as an op does.
struct Move {
  Geometry& geometry;
  Draws* draws;
  void operator()(const PermuteOp& op) const { geometry.permute(op); }
  void operator()(const CropOp& op) const { geometry.crop(op, draws); }
  void operator()(const FlipOp& op) const { geometry.flip(op, draws); }
  void operator()(const NormalizeOp& op) const {
    geometry.add_parameter(op.dim, std::max(op.mean.size(), op.std.size()));
  }
  // Each op that changes no view is named, so that the compiler asks what a new one does.
  void operator()(const CastOp&) const {}
  void operator()(const ScaleOp&) const {}
  void operator()(const ClampOp&) const {}
  void operator()(const PadOp&) const {}
  void operator()(const OneHotOp&) const {}
};

}  // namespace

Geometry geometry_of(const ElementPlan& plan, Draws* draws) {
  Geometry out(plan.input.shape, plan.input.strides);
  for (const Op& op : plan.moves) std::visit(Move{out, draws}, op);
  return out;
}

std::unique_ptr<const Pass> make_element_pass(std::span<const Op>& ops, const TensorLayout& input, bool keeps_order) {
  Planner planner(input, keeps_order);
  while (!ops.empty() && planner.takes(ops.front())) {
    planner.add(ops.front());
    ops = ops.subspan(1);
  }
  return element_pass(planner.finish());
}

}  // namespace penstock::data
