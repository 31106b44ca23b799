#include "data/pack/shard.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/format.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock::data {
namespace {

using Node = Structure::Node;
using Describe = std::function<std::string(std::size_t)>;

struct Column {
  Tensor values;
  std::optional<Tensor> offsets;
};

[[noreturn]] void refuse(ErrorCode code, const Leaf& leaf, const Tensor& first, const Tensor& other,
                         const std::string& sample) {
  const std::string where = leaf.path.empty() ? "" : " " + leaf.path;
  throw Error(code,
              core::format("the tensor{} is {}{}, and that of the first sample of its shard {}{}: samples of one shard "
                           "may differ in dimension 0 alone",
                           where, other.dtype().name(), other.shape().to_string(), first.dtype().name(),
                           first.shape().to_string()),
              {.path = sample});
}

/// Whether all have one shape; refuses what cannot be laid end to end.
bool are_alike(const std::vector<Tensor>& tensors, const Leaf& leaf, const Describe& describe) {
  const Tensor& first = tensors.front();
  bool alike = true;
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const Tensor& other = tensors[i];
    if (other.dtype() != first.dtype()) refuse(ErrorCode::kDTypeMismatch, leaf, first, other, describe(i));
    if (other.shape() == first.shape()) continue;
    alike = false;
    if (first.rank() == 0 || other.rank() != first.rank() ||
        other.shape().drop_front(1) != first.shape().drop_front(1)) {
      refuse(ErrorCode::kShapeMismatch, leaf, first, other, describe(i));
    }
  }
  return alike;
}

Tensor offsets_of(const std::vector<Tensor>& tensors) {
  Tensor offsets = Tensor::empty(Shape{static_cast<std::int64_t>(tensors.size()) + 1}, DType::int64);
  const auto values = offsets.values<std::int64_t>();
  values[0] = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) values[i + 1] = values[i] + tensors[i].shape()[0];
  return offsets;
}

Column column_of(const Value& batch, const Leaf& leaf, const Describe& describe) {
  if (batch.is(Value::Kind::kTensor)) return {batch.as_tensor(), {}};
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < batch.size(); ++i) tensors.push_back(batch[i].as_tensor());
  if (are_alike(tensors, leaf, describe)) return {stack(tensors), {}};
  return {cat(tensors), offsets_of(tensors)};
}

class Maker {
 public:
  Maker(const SampleForm& form, const Describe& describe) : describe_(describe) { shard_.form = form; }

  Shard make(const Value& batch) {
    visit(shard_.form.structure.root, batch);
    shard_.arrays = Value::dict(std::move(arrays_));
    return std::move(shard_);
  }

 private:
  void visit(const Node& node, const Value& batch) {
    if (node.kind == Node::Kind::kLeaf) return add(node.leaf, batch);
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      visit(node.children[i], node.kind == Node::Kind::kDict ? batch.item(i).second : batch[i]);
    }
  }

  void add(std::uint32_t leaf, const Value& batch) {
    PackedArray& array = shard_.form.arrays[leaf];
    Column column = column_of(batch, shard_.form.structure.leaves[leaf], describe_);
    arrays_.emplace_back(array.values, Value::tensor(std::move(column.values)));
    if (column.offsets) {
      arrays_.emplace_back(array.offsets, Value::tensor(std::move(*column.offsets)));
    } else {
      array.offsets.clear();
    }
  }

  const Describe& describe_;
  Shard shard_;
  std::vector<std::pair<std::string, Value>> arrays_;
};

}  // namespace

Shard make_shard(const Value& batch, const SampleForm& form, const Describe& describe) {
  return Maker(form, describe).make(batch);
}

}  // namespace penstock::data
