// Walks a sample's content and writes down its structure: the nesting, and each leaf with its path. Files come from
// anywhere, so depth, number of leaves and length of paths and keys have limits. Paths are kept because errors name the
// leaf that is wrong.

#include "data/sample/value_layout.h"

#include <optional>
#include <utility>

#include "core/format.h"
#include "core/parse_number.h"
#include "core/shared_walk.h"
#include "core/text.h"
#include "penstock/error.h"
#include "value/part.h"

namespace penstock::data {

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxLeaves = 100'000;
/// Each leaf has its path, for messages, and its key: one long key above many leaves would take any memory.
constexpr std::size_t kMaxPath = 400;
constexpr std::size_t kMaxKeys = std::size_t{64} << 20;

/// A path of what lies further within; of a long one, its end.
std::string inner_path(const std::string& path, const std::string& step) {
  std::string out = path + step;
  if (out.size() <= kMaxPath) return out;
  std::size_t begin = out.size() - kMaxPath / 2;
  while (begin < out.size() && (static_cast<unsigned char>(out[begin]) & 0xC0U) == 0x80U) ++begin;
  return "..." + out.substr(begin);
}

using Node = Structure::Node;

bool usable_key(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::kNone:
    case Value::Kind::kBool:
    case Value::Kind::kInt:
    case Value::Kind::kFloat:
    case Value::Kind::kString:
    case Value::Kind::kBytes:
    case Value::Kind::kBigInt:
      return true;
    default:
      return false;
  }
}

std::string key_text(const Value& key) {
  return key.is(Value::Kind::kString) ? core::format("[{}]", core::quoted(key.as_string()))
                                      : core::format("[{}]", key.to_string());
}

std::optional<LeafKind> leaf_kind(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::kTensor:
      return LeafKind::kTensor;
    case Value::Kind::kNone:
      return LeafKind::kNone;
    case Value::Kind::kBool:
      return LeafKind::kBool;
    case Value::Kind::kInt:
      return LeafKind::kInt;
    case Value::Kind::kFloat:
      return LeafKind::kFloat;
    case Value::Kind::kComplex:
      return LeafKind::kComplex;
    case Value::Kind::kString:
      return LeafKind::kString;
    case Value::Kind::kBytes:
      return LeafKind::kBytes;
    default:
      return std::nullopt;
  }
}

using TensorOf = std::function<TensorLayout(const Value&)>;

/// A key of the sample, and what it leads to: as Archive::part says it, or an integer in brackets.
std::pair<Value, Value> selected(const Value& content, const std::string& key) {
  const bool in_brackets = key.size() > 2 && key.starts_with('[') && key.ends_with(']') && !content.find(key);
  const auto number =
      in_brackets ? core::parse_number<std::int64_t>(std::string_view(key).substr(1, key.size() - 2)) : std::nullopt;
  const std::optional<Value> part = number ? value::part_at(content, *number) : value::part_at(content, key);
  if (part) return {number ? Value::integer(*number) : Value::string(key), *part};
  if (content.is(Value::Kind::kDict)) return {Value::string(key), content[key]};  // which says what there is
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("keys were given, but the file holds {} instead of a dict; leave keys out",
                           content.is(Value::Kind::kTensor) ? "a tensor" : content.to_string()));
}

/// Walks a sample's content once.
class Walker {
 public:
  Walker(const TensorOf& tensor, std::string_view advice, Layout& layout)
      : tensor_(tensor),
        advice_(advice),
        walk_(core::format("a sample has a place for each: {}", advice)),
        layout_(layout) {}

  Node walk(const Value& value, const std::string& path, const std::string& key, std::size_t depth) {
    if (depth > kMaxDepth || structure_.leaves.size() > kMaxLeaves || keys_ > kMaxKeys) {
      throw Error(ErrorCode::kLimit,
                  core::format("a sample is nested more than {} deep, has more than {} parts or {} of keys; {}",
                               kMaxDepth, kMaxLeaves, core::format_bytes(kMaxKeys), advice_));
    }
    if (const auto kind = leaf_kind(value.kind())) return leaf(*kind, value, path, key);
    if (value.is(Value::Kind::kDict) || value.is(Value::Kind::kList) || value.is(Value::Kind::kTuple))
      walk_.visit(value.node_id(), value.size());
    switch (value.kind()) {
      case Value::Kind::kDict:
        return dict(value, path, depth);
      case Value::Kind::kList:
      case Value::Kind::kTuple:
        return sequence(value, path, key, depth);
      default:
        throw Error(ErrorCode::kUnsupported,
                    core::format("{} is {}, which cannot be part of a batch; {}", path.empty() ? "the sample" : path,
                                 value.to_string(), advice_));
    }
  }

  /// The dict of the selected keys.
  Node select(const Value& content, std::span<const std::string> keys) {
    Node node{.kind = Node::Kind::kDict};
    for (const std::string& key : keys) {
      const auto [name, part] = selected(content, key);
      const std::string text = name.is(Value::Kind::kString) ? key : name.to_string();
      node.children.push_back(walk(part, core::format("[{}]", core::quoted(key)), text, 1));
      node.keys.push_back(name);
    }
    return node;
  }

  Structure take() && { return std::move(structure_); }

 private:
  Node leaf(LeafKind kind, const Value& value, const std::string& path, const std::string& key) {
    std::size_t number = 0;
    if (kind == LeafKind::kTensor) {
      number = layout_.tensors.size();
      layout_.tensors.push_back(tensor_(value));
    } else {
      number = layout_.scalars.size();
      layout_.scalars.push_back(value);
    }
    keys_ += key.size();
    structure_.leaves.push_back({kind, static_cast<std::uint32_t>(number), path, key});
    return {.kind = Node::Kind::kLeaf, .leaf = static_cast<std::uint32_t>(structure_.leaves.size() - 1)};
  }

  Node dict(const Value& value, const std::string& path, std::size_t depth) {
    Node node{.kind = Node::Kind::kDict, .type_name = value.type_name()};
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto [key, child] = value.item(i);
      if (!usable_key(key)) {
        throw Error(ErrorCode::kUnsupported,
                    core::format("a dict in the sample has the key {}; keys must be strings or "
                                 "scalars",
                                 key.to_string()));
      }
      const std::string name = key.is(Value::Kind::kString) ? key.as_string() : key.to_string();
      node.keys.push_back(key);
      node.children.push_back(walk(child, inner_path(path, key_text(key)), name, depth + 1));
    }
    return node;
  }

  Node sequence(const Value& value, const std::string& path, const std::string& key, std::size_t depth) {
    Node node{.kind = value.is(Value::Kind::kList) ? Node::Kind::kList : Node::Kind::kTuple,
              .type_name = value.type_name()};
    for (std::size_t i = 0; i < value.size(); ++i) {
      node.children.push_back(walk(value[i], inner_path(path, core::format("[{}]", i)), key, depth + 1));
    }
    return node;
  }

  const TensorOf& tensor_;
  std::string_view advice_;
  core::SharedWalk walk_;
  Layout& layout_;
  std::size_t keys_ = 0;  ///< bytes of those of the leaves
  Structure structure_;
};

}  // namespace

LayoutPtr value_layout(const Value& content, std::span<const std::string> keys, const TensorOf& tensor,
                       std::string_view advice, StructureInterner& interner) {
  auto layout = std::make_shared<Layout>();
  Walker walker(tensor, advice, *layout);
  Node root = keys.empty() ? walker.walk(content, {}, {}, 0) : walker.select(content, keys);
  Structure structure = std::move(walker).take();
  structure.root = std::move(root);
  layout->structure = interner.intern(std::move(structure));
  return layout;
}

}  // namespace penstock::data
