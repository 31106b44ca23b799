#include <memory>

#include "data/collate/rule.h"

namespace penstock {

namespace {

class Stack final : public detail::CollateRule {
 public:
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena&) const override {
    return data::place_stacked(column, plan);
  }
};

}  // namespace

data::Result data::place_stacked(const Column& column, BatchPlan& plan) {
  require_one_dtype(column);
  const TensorLayout& first = column[0];
  for (std::size_t i = 1; i < column.size() && !column.uniform(); ++i) {
    if (column[i].shape == first.shape) continue;
    throw_shapes_differ(column, i, "stack expects each tensor to be equal size",
                        "make them equal with pad or pad_to, or keep them apart with ragged");
  }
  const std::uint32_t output = plan.add(first.dtype, first.shape.prepend(static_cast<std::int64_t>(column.size())));
  plan.placements.push_back(
      {.tensor = column.leaf().number, .offset = plan.outputs[output].offset, .pitch = first.nbytes, .slots = {}});
  plan.payload += first.nbytes * column.size();
  return {.kind = Result::Kind::kTensor, .first = output};
}

Collate collate::stack() { return Collate(std::make_shared<Stack>()); }

Collate::Collate() : Collate(collate::stack()) {}

}  // namespace penstock
