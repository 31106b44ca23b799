// The nested state dict is built as a tree of boxes that can still change, and becomes a Value at the end. Which kind
// of container a step makes is told by the step behind it: a string asks for a dict, an integer for a list.

#include "format/dcp/nesting.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "core/format.h"
#include "format/dcp/item_error.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kMaxPathDepth = 500;
/// Of all lists together: one item can name any position.
constexpr std::uint64_t kMaxListItems = std::uint64_t{1} << 22;

struct Node {
  enum class Kind : std::uint8_t { kLeaf, kDict, kList };
  Kind kind = Kind::kLeaf;
  std::optional<Value> value;     ///< of a leaf
  std::vector<std::string> keys;  ///< in order
  std::unordered_map<std::string, Node*> by_key;
  std::vector<Node*> items;  ///< null: None
};

class Tree {
 public:
  Tree() { root_->kind = Node::Kind::kDict; }

  void set(const std::string& item, const Value& path, const Value& value) {
    if (!path.is(Kind::kTuple) && !path.is(Kind::kList)) fail("its path in planner_data is not a tuple", item);
    if (path.size() == 0) fail("its path in planner_data is empty", item);
    if (path.size() > kMaxPathDepth) {
      fail(core::format("it is nested {} levels deep; up to {} are read", path.size(), kMaxPathDepth), item,
           ErrorCode::kLimit);
    }
    Node* at = root_;
    for (std::size_t i = 0; i < path.size(); ++i) {
      Node*& next = step(*at, path[i], item);
      if (next == nullptr) next = add();
      at = next;
      if (i + 1 == path.size()) break;
      const Node::Kind wanted = path[i + 1].is(Kind::kInt) ? Node::Kind::kList : Node::Kind::kDict;
      if (at->kind == Node::Kind::kLeaf && !at->value) at->kind = wanted;
      if (at->kind != wanted) contradict(item);
    }
    set_leaf(*at, item, value);
  }

  void set(const std::string& name, const Value& value) {
    Node*& at = key_of(*root_, name);
    if (at == nullptr) at = add();
    set_leaf(*at, name, value);
  }

  Value take() const { return value_of(*root_); }

 private:
  [[noreturn]] static void contradict(const std::string& item) {
    fail("its path in planner_data contradicts that of another item; .metadata is damaged", item);
  }

  static void set_leaf(Node& at, const std::string& item, const Value& value) {
    if (at.kind != Node::Kind::kLeaf || at.value) contradict(item);
    at.value = value;
  }

  Node* add() { return &nodes_.emplace_back(); }

  static Node*& key_of(Node& dict, const std::string& key) {
    const auto [at, added] = dict.by_key.try_emplace(key, nullptr);
    if (added) dict.keys.push_back(key);
    return at->second;
  }

  Node*& step(Node& at, const Value& step, const std::string& item) {
    if (at.kind == Node::Kind::kDict) {
      if (!step.is(Kind::kString)) contradict(item);
      return key_of(at, step.as_string());
    }
    if (!step.is(Kind::kInt) || step.as_int() < 0) contradict(item);
    const auto position = static_cast<std::uint64_t>(step.as_int());
    if (position >= at.items.size()) {
      const std::uint64_t more = position - at.items.size() + 1;
      if (more > kMaxListItems - list_items_) {
        fail(core::format("it is number {} of a list; .metadata is damaged", position), item, ErrorCode::kLimit);
      }
      list_items_ += more;
      at.items.resize(static_cast<std::size_t>(position) + 1, nullptr);
    }
    return at.items[static_cast<std::size_t>(position)];
  }

  static Value value_of(const Node& node) {
    if (node.kind == Node::Kind::kLeaf) return node.value.value_or(Value());
    if (node.kind == Node::Kind::kDict) {
      std::vector<std::pair<std::string, Value>> items;
      items.reserve(node.keys.size());
      for (const std::string& key : node.keys) items.emplace_back(key, value_of(*node.by_key.at(key)));
      return Value::dict(std::move(items));
    }
    std::vector<Value> items;
    items.reserve(node.items.size());
    for (const Node* const item : node.items) items.push_back(item == nullptr ? Value() : value_of(*item));
    return Value::list(std::move(items));
  }

  std::deque<Node> nodes_;
  Node* root_ = add();
  std::uint64_t list_items_ = 0;
};

}  // namespace

Value nested(const std::vector<std::pair<std::string, Value>>& items,
             const std::vector<std::pair<std::string, Value>>& paths) {
  std::unordered_map<std::string_view, const Value*> path_of;
  for (const auto& [name, path] : paths) path_of.emplace(name, &path);
  Tree tree;
  for (const auto& [name, value] : items) {
    const auto found = path_of.find(name);
    if (found == path_of.end()) {
      tree.set(name, value);
    } else {
      tree.set(name, *found->second, value);
    }
  }
  return tree.take();
}

}  // namespace penstock::format::dcp
