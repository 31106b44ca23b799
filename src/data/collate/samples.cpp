#include <memory>

#include "data/collate/rule.h"

namespace penstock {

namespace {

class Samples final : public detail::CollateRule {
 public:
  explicit Samples(bool keeps_order) : keeps_order_(keeps_order) {}
  bool keeps_samples() const noexcept override { return true; }
  bool keeps_order() const noexcept override { return keeps_order_; }
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    return data::place_apart(column, plan, arena, keeps_order_ ? data::SlotOrder::kAsStored : data::SlotOrder::kRows);
  }

 private:
  bool keeps_order_;
};

}  // namespace

Collate collate::samples() { return Collate(std::make_shared<Samples>(false)); }

Collate data::samples_in_order() { return Collate(std::make_shared<Samples>(true)); }

}  // namespace penstock
