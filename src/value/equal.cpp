// Values are compared from a list of work, because they nest to any depth, and each pair of nodes once, because graphs
// have cycles and share nodes.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/format.h"
#include "penstock/error.h"
#include "value/graph.h"

namespace penstock {
namespace {

using Kind = Value::Kind;
using Node = ValueGraph::Node;

/// Elements of sets and keys that are neither texts nor integers are found by comparing all: one inside the other,
/// which no file needs deep.
constexpr int kMaxUnorderedDepth = 16;

bool same_scalar(const Node& a, const Node& b) {
  if (const auto* tensor = std::get_if<Node::TensorPtr>(&a.scalar)) {
    const auto* other = std::get_if<Node::TensorPtr>(&b.scalar);
    return other != nullptr && Tensor::identical(**tensor, **other);
  }
  if (const auto* entry = std::get_if<Node::Entry>(&a.scalar)) {
    const auto* other = std::get_if<Node::Entry>(&b.scalar);
    return other != nullptr && entry->index == other->index;
  }
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Node::TensorPtr> || std::is_same_v<T, Node::Entry>) {
          return false;
        } else {
          const auto* other = std::get_if<T>(&b.scalar);
          return other != nullptr && value == *other;
        }
      },
      a.scalar);
}

class Comparison {
 public:
  explicit Comparison(int depth) : depth_(depth) {
    if (depth > kMaxUnorderedDepth) {
      throw Error(ErrorCode::kLimit,
                  core::format("the values to compare have more than {} sets or keys one inside the other",
                               kMaxUnorderedDepth));
    }
  }

  bool equal(const Node* a, const Node* b) {
    pending_.emplace_back(a, b);
    while (!pending_.empty()) {
      const auto [left, right] = pending_.back();
      pending_.pop_back();
      if (left == nullptr || right == nullptr) {
        // None is a node in a graph, and none elsewhere.
        if (!is_none(left) || !is_none(right)) return false;
      } else if (seen_.emplace(left, right).second && !same_node(*left, *right)) {
        return false;
      }
    }
    return true;
  }

 private:
  static bool is_none(const Node* node) { return node == nullptr || node->kind == Kind::kNone; }

  /// Without what is in them, which is put on the list.
  bool same_node(const Node& a, const Node& b) {
    if (a.kind != b.kind || a.type_name != b.type_name || !same_scalar(a, b)) return false;
    if ((a.state == nullptr) != (b.state == nullptr)) return false;
    if (a.state) add(*a.state, *b.state);
    if (a.kind == Kind::kDict) return same_dict(a, b);
    if (a.items.size() != b.items.size()) return false;
    if (a.kind == Kind::kSet) return same_set(a, b);
    for (std::size_t i = 0; i < a.items.size(); ++i) add(a.items[i], b.items[i]);
    return true;
  }

  void add(const Value& a, const Value& b) { pending_.emplace_back(ValueGraph::node_of(a), ValueGraph::node_of(b)); }

  bool is_among(const Value& wanted, std::vector<Value>& all) const {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Value& one) {
      return Comparison(depth_ + 1).equal(ValueGraph::node_of(wanted), ValueGraph::node_of(one));
    });
    if (found == all.end()) return false;
    all.erase(found);
    return true;
  }

  /// Texts and plain integers of a set, which are looked up, and its other elements.
  struct Set {
    std::unordered_multiset<std::string_view> texts;
    std::unordered_multiset<std::int64_t> numbers;
    std::vector<Value> others;
  };
  static Set set_of(const Node& node) {
    Set out;
    for (const Value& item : node.items) {
      const Node* const element = ValueGraph::node_of(item);
      if (const std::string* text = plain<std::string>(element, Kind::kString)) {
        out.texts.insert(*text);
      } else if (const std::int64_t* number = plain<std::int64_t>(element, Kind::kInt)) {
        out.numbers.insert(*number);
      } else {
        out.others.push_back(item);
      }
    }
    return out;
  }

  bool same_set(const Node& a, const Node& b) const {
    const Set left = set_of(a);
    Set right = set_of(b);
    return left.texts == right.texts && left.numbers == right.numbers && left.others.size() == right.others.size() &&
           std::ranges::all_of(left.others, [&](const Value& item) { return is_among(item, right.others); });
  }

  /// What a node of that kind holds that has no type of its own; null for others.
  template <class T>
  static const T* plain(const Node* node, Kind kind) {
    const bool is_plain = node != nullptr && node->kind == kind && node->type_name.empty();
    return is_plain ? std::get_if<T>(&node->scalar) : nullptr;
  }

  /// Of a key that is there twice the last one counts.
  struct Dict {
    std::unordered_map<std::string_view, const Value*> texts;
    std::unordered_map<std::int64_t, const Value*> numbers;
    std::vector<std::pair<const Value*, const Value*>> others;
  };
  static Dict dict_of(const Node& node) {
    Dict out;
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const Node* key = ValueGraph::node_of(node.items[i]);
      const bool is_text = key != nullptr && key->kind == Kind::kString;
      const auto* text = is_text ? std::get_if<std::string>(&key->scalar) : nullptr;
      if (text != nullptr) {
        out.texts[*text] = &node.items[i + 1];
      } else if (const std::int64_t* number = plain<std::int64_t>(key, Kind::kInt)) {
        out.numbers[*number] = &node.items[i + 1];
      } else {
        out.others.emplace_back(&node.items[i], &node.items[i + 1]);
      }
    }
    return out;
  }

  template <class Key>
  bool same_items(const std::unordered_map<Key, const Value*>& a, const std::unordered_map<Key, const Value*>& b) {
    if (a.size() != b.size()) return false;
    for (const auto& [key, value] : a) {
      const auto found = b.find(key);
      if (found == b.end()) return false;
      add(*value, *found->second);
    }
    return true;
  }

  bool same_dict(const Node& a, const Node& b) {
    const Dict left = dict_of(a);
    Dict right = dict_of(b);
    if (!same_items(left.texts, right.texts) || !same_items(left.numbers, right.numbers)) return false;
    if (left.others.size() != right.others.size()) return false;
    for (const auto& [key, value] : left.others) {
      const auto same_key = [&, key = key](const auto& pair) {
        return Comparison(depth_ + 1).equal(ValueGraph::node_of(*key), ValueGraph::node_of(*pair.first));
      };
      const auto found = std::find_if(right.others.begin(), right.others.end(), same_key);
      if (found == right.others.end()) return false;
      add(*value, *found->second);
      right.others.erase(found);
    }
    return true;
  }

  int depth_;
  std::vector<std::pair<const Node*, const Node*>> pending_;
  std::set<std::pair<const Node*, const Node*>> seen_;
};

}  // namespace

bool Value::equal(const Value& a, const Value& b) { return Comparison(0).equal(a.node_.get(), b.node_.get()); }

}  // namespace penstock
