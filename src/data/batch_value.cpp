#include "data/batch_value.h"

#include <string>
#include <utility>
#include <vector>

#include "penstock/tensor.h"

namespace penstock::data {

namespace {

class Builder {
 public:
  Builder(const Located& located, const BatchPlan& plan, const Buffer& block)
      : located_(located), plan_(plan), block_(block) {}

  Value build(const Structure::Node& node) const {
    if (node.kind == Structure::Node::Kind::kLeaf) return leaf(plan_.results[node.leaf], node.leaf);
    std::vector<Value> children;
    children.reserve(node.children.size());
    for (const Structure::Node& child : node.children) children.push_back(build(child));
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

 private:
  Value tensor(std::uint32_t output) const {
    const Output& out = plan_.outputs[output];
    return Value::tensor(
        Tensor(block_, out.dtype, out.shape, out.shape.contiguous_strides(), static_cast<std::size_t>(out.offset)));
  }

  Value leaf(const Result& result, std::uint32_t leaf) const {
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
      case Result::Kind::kScalar:
        return scalar(leaf, 0);
      default: {
        std::vector<Value> items;
        items.reserve(located_.size());
        for (std::size_t i = 0; i < located_.size(); ++i) items.push_back(scalar(leaf, i));
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
    const Layout& layout = *located_.samples[position].layout;
    return layout.scalars[layout.structure->leaves[leaf].number];
  }

  const Located& located_;
  const BatchPlan& plan_;
  const Buffer& block_;
};

}  // namespace

Value batch_value(const Located& located, const BatchPlan& plan, const Buffer& block) {
  return Builder(located, plan, block).build(located.samples[0].layout->structure->root);
}

}  // namespace penstock::data
