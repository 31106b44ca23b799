#include <memory>
#include <utility>

#include "data/collate/rule.h"

namespace penstock {

namespace {

class Function final : public detail::CollateRule {
 public:
  explicit Function(detail::CollateFunction function) : function_(std::move(function)) {}
  bool keeps_samples() const noexcept override { return true; }
  const detail::CollateFunction* function() const noexcept override { return &function_; }
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    return data::place_apart(column, plan, arena);
  }

 private:
  detail::CollateFunction function_;
};

}  // namespace

Collate detail::collate_of(std::function<Value(const std::vector<Value>&)> make) {
  return Collate(std::make_shared<Function>(std::move(make)));
}

}  // namespace penstock
