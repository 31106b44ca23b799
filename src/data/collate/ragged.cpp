#include <memory>

#include "data/collate/rule.h"

namespace penstock {

namespace {

class Ragged final : public detail::CollateRule {
 public:
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    return data::place_apart(column, plan, arena);
  }
};

}  // namespace

Collate collate::ragged() { return Collate(std::make_shared<Ragged>()); }

}  // namespace penstock
