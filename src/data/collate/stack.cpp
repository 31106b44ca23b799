#include <memory>

#include "data/collate/rule.h"
#include "penstock/error.h"

namespace penstock {

namespace {

class Stack final : public detail::CollateRule {
 public:
  explicit Stack(bool keeps_order) : keeps_order_(keeps_order) {}
  bool keeps_order() const noexcept override { return keeps_order_; }
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena&) const override {
    return data::place_stacked(column, plan, keeps_order_);
  }

 private:
  bool keeps_order_;
};

/// Whether something holds for all samples, which have one layout mostly.
template <class Holds>
bool all_of(const data::Column& column, const Holds& holds) {
  const std::size_t count = column.uniform() ? 1 : column.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (!holds(column[i])) return false;
  }
  return true;
}

/// Stacks what taken out of the stack is as it was: whoever takes batches apart may not change how samples lie.
class StackOfRows final : public detail::CollateRule {
 public:
  bool keeps_order() const noexcept override { return true; }
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena&) const override {
    const auto is_row = [](const data::TensorLayout& tensor) {
      return !tensor.requires_grad && tensor.strides == tensor.shape.contiguous_strides();
    };
    if (!all_of(column, is_row)) {
      throw Error(ErrorCode::kUnsupported,
                  "a sample does not lie in C order, or requires gradients; read the samples one by one");
    }
    return data::place_stacked(column, plan);
  }
};

}  // namespace

data::Result data::place_stacked(const Column& column, BatchPlan& plan, bool keeps_order) {
  require_one_dtype(column);
  const TensorLayout& first = column[0];
  for (std::size_t i = 1; i < column.size() && !column.uniform(); ++i) {
    if (column[i].shape == first.shape) continue;
    throw_shapes_differ(column, i, "stack expects each tensor to be equal size",
                        "make them equal with pad or pad_to, or keep them apart with ragged");
  }
  const std::uint32_t output = plan.add(first.dtype, first.shape.prepend(static_cast<std::int64_t>(column.size())));
  Output& out = plan.outputs[output];
  out.requires_grad = !all_of(column, [](const TensorLayout& tensor) { return !tensor.requires_grad; });
  SlotOrder order = SlotOrder::kRows;
  const auto is_last = [](const TensorLayout& tensor) { return is_channels_last(tensor.shape, tensor.strides); };
  if (keeps_order && all_of(column, is_last)) {
    order = SlotOrder::kChannelsLast;
    out.strides = slot_strides(order, first).prepend(first.shape.numel());
    // torch concatenates along dimension 0 and splits that, which gives sizes of 1 the step behind the channels.
    for (std::size_t d = 2; d-- > 0 && out.shape[d] == 1 && out.shape[1] == 1;) out.strides[d] = first.shape[1];
  }
  plan.placements.push_back({.tensor = column.leaf().number,
                             .offset = out.offset,
                             .pitch = first.nbytes,
                             .slots = {},
                             .padding = {},
                             .order = order});
  plan.payload += first.nbytes * column.size();
  return {.kind = Result::Kind::kTensor, .first = output};
}

Collate collate::stack() { return Collate(std::make_shared<Stack>(false)); }

Collate data::stack_in_order() { return Collate(std::make_shared<Stack>(true)); }
Collate data::stack_of_rows() { return Collate(std::make_shared<StackOfRows>()); }

Collate::Collate() : Collate(collate::stack()) {}

}  // namespace penstock
