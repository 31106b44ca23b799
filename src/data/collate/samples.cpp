#include <memory>

#include "data/collate/rule.h"

namespace penstock {

namespace {

class Samples final : public detail::CollateRule {
 public:
  bool keeps_samples() const noexcept override { return true; }
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    return data::place_apart(column, plan, arena);
  }
};

}  // namespace

Collate collate::samples() { return Collate(std::make_shared<Samples>()); }

}  // namespace penstock
