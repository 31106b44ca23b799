// What all collation rules share. A batch is planned leaf by leaf: the rule places the tensors of a leaf, and scalars
// become a tensor or a list here. That needs one structure for all samples, so it is required first; only a rule that
// keeps samples may have different ones, and then each sample is placed by itself.

#include "data/collate/rule.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/text.h"

namespace penstock::data {

namespace {

using Node = Structure::Node;

struct Difference {
  std::string path;
  std::string a;
  std::string b;
};

/// The first place where two structures differ.
std::optional<Difference> difference(const Structure& a, const Node& node_a, const Structure& b, const Node& node_b,
                                     const std::string& path) {
  std::string text_a = kind_text(node_a, a);
  std::string text_b = kind_text(node_b, b);
  if (text_a != text_b) return Difference{path, std::move(text_a), std::move(text_b)};
  for (std::size_t i = 0; i < node_a.children.size(); ++i) {
    const std::string step = node_a.kind == Node::Kind::kDict && node_a.keys[i].is(Value::Kind::kString)
                                 ? core::format("[{}]", core::quoted(node_a.keys[i].as_string()))
                                 : core::format("[{}]", i);
    if (auto found = difference(a, node_a.children[i], b, node_b.children[i], path + step)) return found;
  }
  if (node_a.type_name != node_b.type_name) return Difference{path, node_a.type_name, node_b.type_name};
  return std::nullopt;
}

/// The first sample whose structure differs from that of sample 0; 0 if none does.
std::size_t find_other_structure(const Fetched& fetched) {
  const StructurePtr& first = fetched.samples[0].layout->structure;
  for (std::size_t i = 1; i < fetched.size() && !fetched.uniform; ++i) {
    const StructurePtr& other = fetched.samples[i].layout->structure;
    if (other != first && *other != *first) return i;
  }
  return 0;
}

void require_one_structure(const Fetched& fetched) {
  const StructurePtr& first = fetched.samples[0].layout->structure;
  if (const std::size_t i = find_other_structure(fetched)) {
    const StructurePtr& other = fetched.samples[i].layout->structure;
    const auto found = difference(*first, first->root, *other, other->root, {});
    throw Error(
        ErrorCode::kShapeMismatch,
        core::format("each element in list of batch should be of equal size and structure, but {}{} is {} where {} "
                     "has {}; select what all samples share with keys, or leave out the odd ones with subset",
                     fetched.describe(i), found && !found->path.empty() ? " at " + found->path : "",
                     found ? found->b : "different", fetched.describe(0), found ? found->a : "another structure"));
  }
}

/// The dtype of a batch of Python numbers, as in torch's default_collate: floats become float64.
std::optional<DType> scalar_dtype(LeafKind kind) {
  switch (kind) {
    case LeafKind::kBool:
      return DType::boolean;
    case LeafKind::kInt:
      return DType::int64;
    case LeafKind::kFloat:
      return DType::float64;
    case LeafKind::kComplex:
      return DType::complex128;
    default:
      return std::nullopt;
  }
}

/// The dtype of NumPy scalars, if all samples have the same one.
std::optional<DType> numpy_dtype(const Fetched& fetched, std::uint32_t number) {
  constexpr std::string_view kModule = "numpy.";
  const auto type_name = [&](std::size_t i) -> std::string_view {
    return fetched.samples[i].layout->scalars[number].type_name();
  };
  const std::string_view name = type_name(0);
  if (!name.starts_with(kModule)) return std::nullopt;
  for (std::size_t i = 1; i < fetched.size(); ++i) {
    if (type_name(i) != name) return std::nullopt;
  }
  const std::optional<DType> dtype = DType::from_name(name.substr(kModule.size()));
  return dtype && dtype->is_numeric() ? dtype : std::nullopt;
}

std::optional<DType> dtype_of_scalars(const Fetched& fetched, const Leaf& leaf) {
  const std::optional<DType> plain = scalar_dtype(leaf.kind);
  return plain ? numpy_dtype(fetched, leaf.number).value_or(*plain) : plain;
}

Result place_scalars(const Fetched& fetched, const Leaf& leaf, BatchPlan& plan) {
  const std::optional<DType> dtype = plan.by_sample ? std::nullopt : dtype_of_scalars(fetched, leaf);
  if (!dtype) return {.kind = Result::Kind::kList, .first = leaf.number};
  const std::uint32_t output = plan.add(*dtype, Shape{static_cast<std::int64_t>(fetched.size())});
  plan.derived.push_back({.kind = Derived::Kind::kScalars, .output = output, .number = leaf.number});
  return {.kind = Result::Kind::kTensor, .first = output};
}

Result place_tensors(const Column& column, const detail::CollateRule& rule, BatchPlan& plan, Arena& arena) {
  return rule.takes(column) ? rule.place(column, plan, arena) : place_stacked(column, plan, rule.keeps_order());
}

/// Places a leaf of one sample as it is. Returns the offset of a tensor in the block; nothing for a scalar.
std::optional<std::uint64_t> place_alone(const Layout& layout, const Leaf& leaf, BatchPlan& plan, SlotOrder order) {
  if (leaf.kind != LeafKind::kTensor) {
    plan.results.push_back({.kind = Result::Kind::kScalar, .first = leaf.number});
    return std::nullopt;
  }
  const TensorLayout& tensor = layout.tensors[leaf.number];
  const std::uint32_t output = plan.add(tensor, order);
  plan.payload += tensor.nbytes;
  plan.results.push_back({.kind = Result::Kind::kTensor, .first = output});
  return plan.outputs[output].offset;
}

/// Plans samples of different structures, each as it is. Tensor n of every sample is in placement n, even if these
/// tensors have nothing else in common.
void plan_apart(const Fetched& fetched, BatchPlan& plan, Arena& arena, SlotOrder order) {
  plan.by_sample = true;
  std::size_t most = 0;
  for (const Sample& sample : fetched.samples) most = std::max(most, sample.layout->tensors.size());
  std::vector<std::span<std::uint64_t>> slots(most);
  for (std::uint32_t t = 0; t < most; ++t) {
    slots[t] = arena.array<std::uint64_t>(fetched.size());
    std::fill(slots[t].begin(), slots[t].end(), Placement::kNoSlot);
    plan.placements.push_back({.tensor = t, .slots = slots[t], .order = order});
  }
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    const Layout& layout = *fetched.samples[i].layout;
    plan.first_results.push_back(plan.results.size());
    for (const Leaf& leaf : layout.structure->leaves) {
      if (const auto offset = place_alone(layout, leaf, plan, order)) slots[leaf.number][i] = *offset;
    }
  }
}

}  // namespace

void throw_shapes_differ(const Column& column, std::size_t position, std::string_view why, std::string_view advice) {
  const Fetched& fetched = column.fetched();
  throw Error(ErrorCode::kShapeMismatch,
              core::format("{}, but {} has shape {}{} and {} has {}; {}", why, fetched.describe(position),
                           column[position].shape.to_string(), column.where(), fetched.describe(0),
                           column[0].shape.to_string(), advice));
}

void require_keys(const Structure& structure, std::span<const std::string> keys, std::string_view what) {
  for (const std::string& key : keys) {
    const auto has_key = [&](const Leaf& leaf) { return leaf.key == key; };
    if (std::any_of(structure.leaves.begin(), structure.leaves.end(), has_key)) continue;
    core::NearestNames nearest(key);
    for (const Leaf& leaf : structure.leaves) nearest.add(leaf.key);
    const std::string hint = core::did_you_mean(nearest.take());
    throw Error(ErrorCode::kKeyNotFound, core::format("the samples have no key {} to {}{}{}", core::quoted(key), what,
                                                      hint.empty() ? "" : "; ", hint));
  }
}

void require_one_dtype(const Column& column) {
  const DType& first = column[0].dtype;
  if (first.code() == DType::Code::kOpaque) {
    throw Error(
        ErrorCode::kUnsupported,
        core::format("the tensor{} of {} has the type {}, which cannot be part of a batch; leave it out with keys",
                     column.where(), column.fetched().describe(0), first.name()));
  }
  for (std::size_t i = 1; i < column.size() && !column.uniform(); ++i) {
    if (column[i].dtype == first) continue;
    throw Error(
        ErrorCode::kDTypeMismatch,
        core::format("the tensors of a batch must have one dtype, but {} has {}{} and {} has {}; write the files with "
                     "one dtype, or keep the tensors apart with ragged",
                     column.fetched().describe(i), column[i].dtype.name(), column.where(), column.fetched().describe(0),
                     first.name()));
  }
}

Result place_apart(const Column& column, BatchPlan& plan, Arena& arena, SlotOrder order) {
  const auto slots = arena.array<std::uint64_t>(column.size());
  const auto first = static_cast<std::uint32_t>(plan.outputs.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    const std::uint32_t output = plan.add(column[i], order);
    slots[i] = plan.outputs[output].offset;
    plan.payload += column[i].nbytes;
  }
  plan.placements.push_back({.tensor = column.leaf().number, .slots = slots, .order = order});
  return {.kind = Result::Kind::kTensors, .first = first, .count = static_cast<std::uint32_t>(column.size())};
}

void plan_batch(const Fetched& fetched, const detail::CollateRule& rule, BatchPlan& plan, Arena& arena) {
  plan.clear();
  if (rule.keeps_samples() && find_other_structure(fetched) != 0) {
    return plan_apart(fetched, plan, arena, rule.keeps_order() ? SlotOrder::kAsStored : SlotOrder::kRows);
  }
  require_one_structure(fetched);
  const Structure& structure = *fetched.samples[0].layout->structure;
  rule.check(structure);
  plan.by_sample = rule.keeps_samples();
  for (const Leaf& leaf : structure.leaves) {
    plan.results.push_back(leaf.kind == LeafKind::kTensor ? place_tensors(Column(fetched, leaf), rule, plan, arena)
                                                          : place_scalars(fetched, leaf, plan));
  }
}

void plan_single(const Fetched& fetched, BatchPlan& plan, SlotOrder order) {
  plan.clear();
  const Layout& layout = *fetched.samples[0].layout;
  for (const Leaf& leaf : layout.structure->leaves) {
    const auto offset = place_alone(layout, leaf, plan, order);
    if (offset) plan.placements.push_back({.tensor = leaf.number, .offset = *offset, .slots = {}, .order = order});
  }
}

}  // namespace penstock::data
