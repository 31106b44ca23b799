#include <algorithm>
#include <memory>
#include <optional>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "data/collate/rule.h"

namespace penstock {

namespace {

using data::Column;

class Pad final : public detail::CollateRule {
 public:
  Pad(PadOptions options, std::optional<std::int64_t> length) : options_(std::move(options)), length_(length) {}

  void check(const data::Structure& structure) const override {
    for (const std::string& key : options_.keys) {
      const auto has_key = [&](const data::Leaf& leaf) { return leaf.key == key; };
      if (std::any_of(structure.leaves.begin(), structure.leaves.end(), has_key)) continue;
      core::NearestNames nearest(key);
      for (const data::Leaf& leaf : structure.leaves) nearest.add(leaf.key);
      const std::string hint = core::did_you_mean(nearest.take());
      throw Error(ErrorCode::kKeyNotFound, core::format("the samples have no key {} to pad{}{}", core::quoted(key),
                                                        hint.empty() ? "" : "; ", hint));
    }
  }

  data::Result place(const Column& column, data::BatchPlan& plan, data::Arena&) const override {
    const std::optional<std::size_t> dim = padded_dim(column);
    if (!dim) return data::place_stacked(column, plan);
    data::require_one_dtype(column);
    const std::int64_t length = check_shapes(column, *dim);
    return add_outputs(column, plan, *dim, length);
  }

 private:
  /// The dimension to pad, or nothing when the column is to be stacked.
  std::optional<std::size_t> padded_dim(const Column& column) const {
    const std::vector<std::string>& keys = options_.keys;
    if (!keys.empty() && std::find(keys.begin(), keys.end(), column.leaf().key) == keys.end()) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(column[0].shape.rank());
    const std::int64_t dim = options_.dim < 0 ? options_.dim + rank : options_.dim;
    if (dim >= 0 && dim < rank) return static_cast<std::size_t>(dim);
    // Scalars and labels beside what is padded have fewer dimensions; a sample that is a tensor is what is meant.
    if (keys.empty() && !column.leaf().path.empty()) return std::nullopt;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("dimension {} cannot be padded, because {} has shape {}{}", options_.dim,
                             column.located().describe(0), column[0].shape.to_string(), column.where()));
  }

  /// Checks everything but `dim` for equality and returns the slot's length along `dim`.
  std::int64_t check_shapes(const Column& column, std::size_t dim) const {
    std::int64_t longest = column[0].shape[dim];
    for (std::size_t i = 1; i < column.size() && !column.uniform(); ++i) {
      if (!fits(column[i].shape, column[0].shape, dim)) {
        data::throw_shapes_differ(column, i, core::format("padding changes dimension {} alone", dim),
                                  "make the other dimensions equal, or keep the tensors apart with ragged");
      }
      longest = std::max(longest, column[i].shape[dim]);
    }
    const std::int64_t length = length_.value_or(longest);
    for (std::size_t i = 0; i < column.size(); ++i) require_source(column, i, dim, length);
    return length;
  }

  static bool fits(const Shape& a, const Shape& b, std::size_t dim) {
    if (a.rank() != b.rank()) return false;
    for (std::size_t d = 0; d < a.rank(); ++d) {
      if (d != dim && a[d] != b[d]) return false;
    }
    return true;
  }

  /// Mirroring and repeating need elements to take.
  void require_source(const Column& column, std::size_t position, std::size_t dim, std::int64_t length) const {
    const std::int64_t own = column[position].shape[dim];
    const std::int64_t needed = options_.mode == PadMode::kReflect ? 2 : options_.mode == PadMode::kReplicate ? 1 : 0;
    if (own >= length || own >= needed) return;
    throw Error(
        ErrorCode::kShapeMismatch,
        core::format("{} has {} along dimension {}{}; padding by {} needs {} or more, padding with a "
                     "constant none",
                     column.located().describe(position), core::counted(static_cast<std::uint64_t>(own), "element"),
                     dim, column.where(), options_.mode == PadMode::kReflect ? "reflection" : "replication", needed));
  }

  data::Result add_outputs(const Column& column, data::BatchPlan& plan, std::size_t dim, std::int64_t length) const {
    const data::TensorLayout& first = column[0];
    const auto batch = static_cast<std::int64_t>(column.size());
    Shape slot = first.shape;
    slot[dim] = length;
    data::Padding padding{.dim = dim, .length = length, .mode = options_.mode};
    if (options_.mode == PadMode::kConstant) padding.value = data::element_bytes(options_.value, first.dtype);

    const std::uint32_t values = plan.add(first.dtype, slot.prepend(batch));
    const std::uint64_t slot_bytes = (plan.bytes - plan.outputs[values].offset) / column.size();
    plan.placements.push_back({.tensor = column.leaf().number,
                               .offset = plan.outputs[values].offset,
                               .pitch = slot_bytes,
                               .slots = {},
                               .padding = padding});
    plan.payload += slot_bytes * column.size();
    if (!options_.lengths && !options_.mask) return {.kind = data::Result::Kind::kTensor, .first = values};

    const auto derive = [&](data::Derived::Kind kind, const DType& dtype, const Shape& shape) {
      plan.derived.push_back({.kind = kind,
                              .output = plan.add(dtype, shape),
                              .number = column.leaf().number,
                              .dim = dim,
                              .length = length});
    };
    if (options_.lengths) derive(data::Derived::Kind::kLengths, DType::int64, Shape{batch});
    if (options_.mask) derive(data::Derived::Kind::kMask, DType::boolean, Shape{batch, length});
    return {.kind = data::Result::Kind::kPadded, .first = values, .lengths = options_.lengths, .mask = options_.mask};
  }

  PadOptions options_;
  std::optional<std::int64_t> length_;
};

}  // namespace

Collate collate::pad(const PadOptions& options) { return Collate(std::make_shared<Pad>(options, std::nullopt)); }

Collate collate::pad_to(std::int64_t length, const PadOptions& options) {
  if (length < 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("the length to pad to is {}; it must be 0 or more", length));
  }
  return Collate(std::make_shared<Pad>(options, length));
}

}  // namespace penstock
