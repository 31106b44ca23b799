#include <memory>

#include "data/collate/rule.h"

namespace penstock {

namespace {

class Ragged final : public detail::CollateRule {
 public:
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    const auto slots = arena.array<std::uint64_t>(column.size());
    const auto first = static_cast<std::uint32_t>(plan.outputs.size());
    for (std::size_t i = 0; i < column.size(); ++i) {
      const std::uint32_t output = plan.add(column[i].dtype, column[i].shape);
      slots[i] = plan.outputs[output].offset;
      plan.payload += column[i].nbytes;
    }
    plan.placements.push_back({.tensor = column.leaf().number, .slots = slots});
    return {.kind = data::Result::Kind::kTensors, .first = first, .count = static_cast<std::uint32_t>(column.size())};
  }
};

}  // namespace

Collate ragged() { return Collate(std::make_shared<Ragged>()); }

}  // namespace penstock
