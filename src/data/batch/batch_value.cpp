#include "data/batch/batch_value.h"

#include <string>
#include <utility>
#include <vector>

#include "penstock/tensor.h"

namespace penstock::data {

namespace {

class Builder {
 public:
  Builder(const Fetched& fetched, const BatchPlan& plan, const Buffer& block,
          std::span<const std::optional<Tensor>> made)
      : fetched_(fetched), plan_(plan), block_(block), made_(made) {}

  Value batch() const {
    return build(root(0), [this](std::uint32_t leaf) { return collated(plan_.results[leaf], leaf); });
  }

  Value samples() const {
    std::vector<Value> items;
    items.reserve(fetched_.size());
    for (std::size_t i = 0; i < fetched_.size(); ++i) {
      const std::size_t first = plan_.first_results.empty() ? 0 : plan_.first_results[i];
      const auto leaf_of = [&](std::uint32_t leaf) { return apart(plan_.results[first + leaf], leaf, i); };
      items.push_back(build(root(i), leaf_of));
    }
    return Value::list(std::move(items));
  }

 private:
  const Structure::Node& root(std::size_t position) const { return fetched_.samples[position].layout->structure->root; }

  template <class Leaf>
  Value build(const Structure::Node& node, const Leaf& leaf) const {
    if (node.kind == Structure::Node::Kind::kLeaf) return leaf(node.leaf);
    std::vector<Value> children;
    children.reserve(node.children.size());
    for (const Structure::Node& child : node.children) children.push_back(build(child, leaf));
    switch (node.kind) {
      case Structure::Node::Kind::kList:
        return Value::list(std::move(children));
      case Structure::Node::Kind::kTuple:
        return Value::tuple(std::move(children), node.type_name);
      default: {
        std::vector<Value::Item> items;
        items.reserve(children.size());
        for (std::size_t i = 0; i < children.size(); ++i) items.emplace_back(node.keys[i], std::move(children[i]));
        return Value::dict(std::move(items), node.type_name);
      }
    }
  }

  Value tensor(std::uint32_t output) const {
    const Output& out = plan_.outputs[output];
    if (output < made_.size() && made_[output]) return marked(*made_[output], out);
    Tensor tensor(block_, out.dtype, out.shape, out.strides, static_cast<std::size_t>(out.offset));
    return marked(tensor, out);
  }

  static Value marked(const Tensor& tensor, const Output& out) {
    const bool is_marked = out.requires_grad && (tensor.dtype().is_floating() || tensor.dtype().is_complex());
    return Value::tensor(is_marked ? tensor.with_requires_grad(true) : tensor);
  }

  /// What a leaf is in the sample at `position`.
  Value apart(const Result& result, std::uint32_t leaf, std::size_t position) const {
    if (result.kind == Result::Kind::kTensor) return tensor(result.first);
    if (result.kind != Result::Kind::kTensors) return scalar(leaf, position);
    return tensor(result.first + static_cast<std::uint32_t>(position));
  }

  /// What a leaf is in the batch.
  Value collated(const Result& result, std::uint32_t leaf) const {
    switch (result.kind) {
      case Result::Kind::kTensor:
        return tensor(result.first);
      case Result::Kind::kTensors: {
        std::vector<Value> items;
        items.reserve(result.count);
        for (std::uint32_t i = 0; i < result.count; ++i) items.push_back(tensor(result.first + i));
        return Value::list(std::move(items));
      }
      case Result::Kind::kPadded:
        return padded(result);
      case Result::Kind::kJoined:
        return Value::dict({{"values", tensor(result.first)},
                            {"cu_seqlens", tensor(result.first + 1)},
                            {"max_seqlen", Value::integer(result.longest)}});
      case Result::Kind::kScalar:
        return scalar(leaf, 0);
      default: {
        std::vector<Value> items;
        items.reserve(fetched_.size());
        for (std::size_t i = 0; i < fetched_.size(); ++i) items.push_back(scalar(leaf, i));
        return Value::list(std::move(items));
      }
    }
  }

  Value padded(const Result& result) const {
    std::vector<std::pair<std::string, Value>> items;
    std::uint32_t output = result.first;
    items.emplace_back("values", tensor(output++));
    if (result.lengths) items.emplace_back("lengths", tensor(output++));
    if (result.mask) items.emplace_back("mask", tensor(output++));
    return Value::dict(std::move(items));
  }

  const Value& scalar(std::uint32_t leaf, std::size_t position) const {
    const Layout& layout = *fetched_.samples[position].layout;
    return layout.scalars[layout.structure->leaves[leaf].number];
  }

  const Fetched& fetched_;
  const BatchPlan& plan_;
  const Buffer& block_;
  std::span<const std::optional<Tensor>> made_;
};

}  // namespace

Value batch_value(const Fetched& fetched, const BatchPlan& plan, const Buffer& block,
                  std::span<const std::optional<Tensor>> made) {
  const Builder builder(fetched, plan, block, made);
  return plan.by_sample ? builder.samples() : builder.batch();
}

}  // namespace penstock::data
