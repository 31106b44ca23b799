#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "core/text.h"
#include "data/collate/rule.h"

namespace penstock {

namespace {

class Ragged final : public detail::CollateRule {
 public:
  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    return data::place_apart(column, plan, arena);
  }
};

/// Tensors one behind the other along dimension 0, with where each ends.
class Joined final : public detail::CollateRule {
 public:
  explicit Joined(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  void check(const data::Structure& structure) const override { data::require_keys(structure, keys_, "join"); }

  bool takes(const data::Column& column) const override {
    if (keys_.empty() && column[0].shape.rank() == 0) return false;
    return keys_.empty() || std::find(keys_.begin(), keys_.end(), column.leaf().key) != keys_.end();
  }

  data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const override {
    data::require_one_dtype(column);
    const auto [rows, longest] = counted_rows(column);
    Shape shape = column[0].shape;
    shape[0] = rows;
    const std::uint32_t values = plan.add(column[0].dtype, shape);
    const auto slots = arena.array<std::uint64_t>(column.size());
    std::uint64_t next = plan.outputs[values].offset;
    for (std::size_t i = 0; i < column.size(); ++i) {
      slots[i] = next;
      next += column[i].nbytes;
    }
    plan.payload += next - plan.outputs[values].offset;
    plan.placements.push_back({.tensor = column.leaf().number, .slots = slots});
    const std::uint32_t ends = plan.add(DType::int32, Shape{static_cast<std::int64_t>(column.size()) + 1});
    plan.derived.push_back({.kind = data::Derived::Kind::kEnds, .output = ends, .number = column.leaf().number});
    return {.kind = data::Result::Kind::kJoined, .first = values, .longest = longest};
  }

 private:
  /// Of all samples together, and of the longest.
  static std::pair<std::int64_t, std::int64_t> counted_rows(const data::Column& column) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    std::int64_t rows = 0;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
      const Shape& shape = column[i].shape;
      if (shape.rank() == 0 || shape.rank() != column[0].shape.rank() ||
          shape.drop_front(1) != column[0].shape.drop_front(1)) {
        data::throw_shapes_differ(column, i, "joining changes dimension 0 alone",
                                  "name what is joined with keys, or keep the tensors apart");
      }
      if (shape[0] > kMost - rows) {
        core::refuse(
            core::format("the first {} of the batch{} have more than the {} rows that cu_seqlens, which is "
                         "int32, can count; use a smaller batch_size",
                         core::counted(i + 1, "sample"), column.where(), kMost));
      }
      rows += shape[0];
      longest = std::max(longest, shape[0]);
    }
    return {rows, longest};
  }

  std::vector<std::string> keys_;
};

}  // namespace

Collate collate::ragged(const RaggedOptions& options) {
  if (options.cu_seqlens) return Collate(std::make_shared<Joined>(options.keys));
  if (!options.keys.empty()) core::refuse("keys of ragged say what is joined; give them with cu_seqlens");
  return Collate(std::make_shared<Ragged>());
}

}  // namespace penstock
