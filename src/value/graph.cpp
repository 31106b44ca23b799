#include "value/graph.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock {

namespace detail {

ValueNode::~ValueNode() {
  std::vector<Value> pending = std::move(items);
  if (state) pending.push_back(std::move(*state));
  while (!pending.empty()) {
    const Value last = std::move(pending.back());
    pending.pop_back();
    // Of a node that dies with this handle the children are taken out first, so that it has none to recurse into.
    if (last.node_.use_count() != 1) continue;
    auto& node = const_cast<ValueNode&>(*last.node_);
    std::move(node.items.begin(), node.items.end(), std::back_inserter(pending));
    node.items.clear();
    if (node.state) pending.push_back(std::move(*node.state));
    node.state.reset();
  }
}

}  // namespace detail

namespace {

using Node = ValueGraph::Node;

/// Copies nodes one by one from a list of work, because graphs have cycles and any depth.
class Copier {
 public:
  explicit Copier(std::function<Node::Scalar(const Node::Scalar&)> change) : change_(std::move(change)) {}

  Value copy(const Value& root) {
    const Node* const source = ValueGraph::node_of(root);
    if (source == nullptr) return {};
    const Node* const target = target_of(source);
    while (!pending_.empty()) {
      const auto [from, to] = pending_.back();
      pending_.pop_back();
      fill(*from, *to);
    }
    return graph_.seal(target);
  }

 private:
  Node* target_of(const Node* source) {
    const auto [found, is_new] = targets_.try_emplace(source, nullptr);
    if (is_new) {
      found->second = graph_.add(source->kind);
      pending_.emplace_back(source, found->second);
    }
    return found->second;
  }

  Value child(const Value& source) {
    const Node* const node = ValueGraph::node_of(source);
    return node == nullptr ? Value() : ValueGraph::child(target_of(node));
  }

  void fill(const Node& from, Node& to) {
    to.scalar = change_(from.scalar);
    to.type_name = from.type_name;
    to.items.reserve(from.items.size());
    for (const Value& item : from.items) to.items.push_back(child(item));
    if (from.state) to.state = std::make_unique<Value>(child(*from.state));
  }

  std::function<Node::Scalar(const Node::Scalar&)> change_;
  ValueGraph graph_;
  std::unordered_map<const Node*, Node*> targets_;
  std::vector<std::pair<const Node*, Node*>> pending_;
};

/// What was given for the tensor at `index`.
template <class T>
const T& given(std::span<const T> all, std::size_t index) {
  if (index < all.size()) return all[index];
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the value refers to tensor {}, but {} were given", index, all.size()));
}

}  // namespace

ValueGraph::ValueGraph() : nodes_(std::make_shared<std::deque<Node>>()) {}

ValueGraph::Node* ValueGraph::add(Value::Kind kind) { return &nodes_->emplace_back(kind); }

std::size_t ValueGraph::size() const noexcept { return nodes_->size(); }

Value ValueGraph::child(const Node* node) {
  return Value(std::shared_ptr<const Node>(std::shared_ptr<const void>(), node));
}

const ValueGraph::Node* ValueGraph::node_of(const Value& value) noexcept { return value.node_.get(); }

Value ValueGraph::seal(const Node* root) const { return Value(std::shared_ptr<const Node>(nodes_, root)); }

Value with_tensors(const Value& value, std::span<const Tensor> tensors) {
  return Copier([tensors](const Node::Scalar& scalar) -> Node::Scalar {
           const auto* entry = std::get_if<Node::Entry>(&scalar);
           if (entry == nullptr) return scalar;
           return std::make_shared<const Tensor>(given(tensors, entry->index));
         })
      .copy(value);
}

Value with_entries(const Value& value, std::span<const std::size_t> positions) {
  return Copier([positions](const Node::Scalar& scalar) -> Node::Scalar {
           const auto* entry = std::get_if<Node::Entry>(&scalar);
           return entry == nullptr ? scalar : Node::Entry{given(positions, entry->index)};
         })
      .copy(value);
}

Value map_tensors(const Value& value, const std::function<Tensor(const Tensor&)>& change) {
  return Copier([&change](const Node::Scalar& scalar) -> Node::Scalar {
           const auto* tensor = std::get_if<Node::TensorPtr>(&scalar);
           if (tensor == nullptr) return scalar;
           return std::make_shared<const Tensor>(change(**tensor));
         })
      .copy(value);
}

namespace {

/// A number or a text, which nobody can write to: samples share the keys of their dicts.
bool holds_no_tensor(const Node& node) {
  return !std::holds_alternative<Node::TensorPtr>(node.scalar) && node.items.empty() && !node.state;
}

}  // namespace

bool ValueGraph::is_alone(const Value& value) {
  struct Memory {
    const void* owner;
    long seen;
    long handles;
  };
  std::vector<const Value*> pending = {&value};
  std::unordered_set<const Node*> of_graph;
  std::vector<Memory> memories;
  while (!pending.empty()) {
    const Value& next = *pending.back();
    pending.pop_back();
    const long owners = next.node_.use_count();
    if (next.node_ == nullptr || holds_no_tensor(*next.node_)) continue;
    // A child without owners lies in a graph, whose owner is the handle that was seen before it.
    const bool in_graph = owners == 0 && &next != &value;
    if (in_graph ? !of_graph.insert(next.node_.get()).second : owners != 1) {
      if (in_graph) continue;
      return false;
    }
    if (const auto* tensor = std::get_if<Node::TensorPtr>(&next.node_->scalar)) {
      if (tensor->use_count() != 1) return false;
      const std::shared_ptr<const void>& owner = (*tensor)->buffer().owner();
      const auto known = std::find_if(memories.begin(), memories.end(),
                                      [&](const Memory& memory) { return memory.owner == owner.get(); });
      if (known != memories.end()) {
        ++known->seen;
      } else {
        memories.push_back({owner.get(), 1, owner.use_count()});
      }
    }
    for (const Value& item : next.node_->items) pending.push_back(&item);
    if (next.node_->state) pending.push_back(next.node_->state.get());
  }
  const auto has_no_other = [](const Memory& memory) { return memory.seen == memory.handles; };
  return std::all_of(memories.begin(), memories.end(), has_no_other);
}

Value without_sharing(Value value) {
  if (ValueGraph::is_alone(value)) return value;
  return map_tensors(value, [](const Tensor& tensor) { return tensor.clone(); });
}

}  // namespace penstock
