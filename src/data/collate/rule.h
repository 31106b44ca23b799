#pragma once

// What a collation rule answers, and the table of rules. A rule sees shapes and types of a batch's samples and decides
// what each tensor of the batch looks like; BatchPlan asks it, and the mover writes the bytes.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/collate/batch_plan.h"
#include "penstock/collate.h"

namespace penstock::detail {

using CollateFunction = std::function<Value(const std::vector<Value>&)>;

/// Decides how many samples become one batch. Immutable and thread-safe. It sees shapes and types, never payload.
class CollateRule {
 public:
  virtual ~CollateRule() = default;
  /// Refuses a structure, which all samples of the batch share, by throwing Error. Called before `place`.
  virtual void check(const data::Structure&) const {}
  /// Whether the batch is a list of samples; otherwise it is one structure with a batch in each leaf. A rule that keeps
  /// samples places each tensor by itself, and scalars stay scalars.
  virtual bool keeps_samples() const noexcept { return false; }
  /// Whether elements lie as torch lays them: those of samples that are kept in the order of their own tensor, and
  /// those of channels-last samples so in their stack. Otherwise in C order.
  virtual bool keeps_order() const noexcept { return false; }
  /// A function of the program that makes a batch of these samples, or null. Only for a rule that keeps samples.
  virtual const CollateFunction* function() const noexcept { return nullptr; }
  /// Whether the rule places this column of tensors itself. Others are stacked.
  virtual bool takes(const data::Column&) const { return true; }
  /// Decides what one column that it takes becomes: adds outputs and one placement for the column to the plan. Throws
  /// Error for samples that do not fit together.
  virtual data::Result place(const data::Column& column, data::BatchPlan& plan, data::Arena& arena) const = 0;
};

}  // namespace penstock::detail

namespace penstock::data {

/// A row of the table of rules.
struct CollateEntry {
  std::string_view name;
  /// The rule with its defaults (pad_to: to length 8; function: one that gives the list of the samples).
  Collate (*make)();
};

/// The table: one row for each file of this folder that defines a rule.
std::span<const CollateEntry> collates() noexcept;

/// Throws kShapeMismatch: the tensors at two positions of a column do not go together. `why`: "stack expects each
/// tensor to be equal size"; `advice`: what to do.
[[noreturn]] void throw_shapes_differ(const Column& column, std::size_t position, std::string_view why,
                                      std::string_view advice);
/// kKeyNotFound unless the structure has all of these keys. `what` is done to them: "pad".
void require_keys(const Structure& structure, std::span<const std::string> keys, std::string_view what);
/// kDTypeMismatch unless all tensors of the column have one dtype, kUnsupported for a type known by name only.
void require_one_dtype(const Column& column);

/// `stack` and `samples` that keep the order of elements (CollateRule::keeps_order), for penstock.torch.
Collate stack_in_order();
Collate samples_in_order();
/// `stack` for samples that lie in C order and require no gradients; kUnsupported for others.
Collate stack_of_rows();

/// The rule behind `stack`, for columns that another rule leaves to it.
Result place_stacked(const Column& column, BatchPlan& plan, bool keeps_order = false);
/// Places each tensor of the column by itself, one after the other.
Result place_apart(const Column& column, BatchPlan& plan, Arena& arena, SlotOrder order = SlotOrder::kRows);

/// Decides a whole batch: checks that the samples share a structure (kShapeMismatch names the two that do not), lets
/// `rule` place the tensors, and makes tensors or lists of the scalars.
void plan_batch(const Fetched& fetched, const detail::CollateRule& rule, BatchPlan& plan, Arena& arena);
/// Places the tensors of the only sample of `fetched`, without collation.
void plan_single(const Fetched& fetched, BatchPlan& plan, SlotOrder order);

}  // namespace penstock::data
