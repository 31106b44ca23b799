// Layouts are compared for each sample of a batch, so samples of equal nesting share one Structure (StructureInterner),
// and two pointers are compared in place of two trees. Joining layouts into a tuple or dict renumbers the tensors and
// scalars of each part, because a sample numbers its tensors from 0.

#include "data/sample/layout.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"
#include "data/sample/strides.h"

namespace penstock::data {

namespace {

constexpr std::size_t kRememberedStructures = 64;

using Node = Structure::Node;

bool same_key(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Value::Kind::kInt:
      return a.as_int() == b.as_int();
    case Value::Kind::kFloat:
      return a.as_float() == b.as_float();
    default:
      return a.as_string() == b.as_string();
  }
}

bool same_node(const Node& a, const Node& b) {
  return a.kind == b.kind && a.leaf == b.leaf && a.type_name == b.type_name && a.keys.size() == b.keys.size() &&
         a.children.size() == b.children.size() && std::equal(a.keys.begin(), a.keys.end(), b.keys.begin(), same_key) &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(), same_node);
}

/// `node` with its leaves behind `base` others.
Node shifted(const Node& node, std::uint32_t base) {
  const bool is_leaf = node.kind == Node::Kind::kLeaf;
  Node out{.kind = node.kind, .leaf = node.leaf + (is_leaf ? base : 0), .type_name = node.type_name, .keys = node.keys};
  out.children.reserve(node.children.size());
  for (const Node& child : node.children) out.children.push_back(shifted(child, base));
  return out;
}

}  // namespace

bool operator==(const Structure& a, const Structure& b) { return a.leaves == b.leaves && same_node(a.root, b.root); }

TensorLayout::TensorLayout(DType type, Shape sizes, Strides steps)
    : dtype(std::move(type)), shape(std::move(sizes)), strides(std::move(steps)) {
  nbytes = core::checked_mul(static_cast<std::uint64_t>(shape.numel()), std::uint64_t{dtype.itemsize()},
                             "the size of a tensor");
  const Strides plain = shape.contiguous_strides();
  for (std::size_t d = 0; d < shape.rank(); ++d) contiguous &= shape[d] == 1 || strides[d] == plain[d];
  contiguous |= nbytes == 0;
  dense = contiguous || fills_its_bytes(shape, strides);
}

std::uint64_t TensorLayout::extent() const {
  if (dense) return nbytes;
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    const auto along = core::checked_mul(static_cast<std::uint64_t>(shape[d] - 1),
                                         static_cast<std::uint64_t>(strides[d]), "the extent of a tensor");
    last = core::checked_add(last, along, "the extent of a tensor");
  }
  return core::checked_mul(last + 1, std::uint64_t{dtype.itemsize()}, "the extent of a tensor");
}

StructurePtr StructureInterner::intern(Structure structure) {
  for (const StructurePtr& known : seen_) {
    if (*known == structure) return known;
  }
  if (seen_.size() == kRememberedStructures) seen_.erase(seen_.begin());
  return seen_.emplace_back(std::make_shared<const Structure>(std::move(structure)));
}

LayoutPtr single_tensor_layout(TensorLayout tensor) {
  static const StructurePtr structure = [] {
    auto made = std::make_shared<Structure>();
    made->leaves.emplace_back();
    return made;
  }();
  auto layout = std::make_shared<Layout>();
  layout->structure = structure;
  layout->tensors.push_back(std::move(tensor));
  return layout;
}

namespace {

/// Puts the layouts of parts together, as a nesting says whose leaves are the parts.
class Joined {
 public:
  explicit Joined(std::span<const LayoutPtr> parts) : parts_(parts) {}

  LayoutPtr layout(const Node& nesting, StructureInterner& interner) {
    structure_.root = add(nesting, {});
    layout_->structure = interner.intern(std::move(structure_));
    return std::move(layout_);
  }

 private:
  /// `key`: of the innermost dict around it, if any.
  Node add(const Node& nesting, const std::string& key) {
    if (nesting.kind == Node::Kind::kLeaf) return add(*parts_[nesting.leaf], key);
    Node out{.kind = nesting.kind, .type_name = nesting.type_name, .keys = nesting.keys};
    out.children.reserve(nesting.children.size());
    const std::size_t size = path_.size();
    for (std::size_t i = 0; i < nesting.children.size(); ++i) {
      const std::string name = nesting.keys.empty() ? std::string() : nesting.keys[i].as_string();
      path_ += nesting.keys.empty() ? core::format("[{}]", i) : core::format("[{}]", core::quoted(name));
      out.children.push_back(add(nesting.children[i], nesting.keys.empty() ? key : name));
      path_.resize(size);
    }
    return out;
  }

  Node add(const Layout& part, const std::string& key) {
    const auto base = static_cast<std::uint32_t>(structure_.leaves.size());
    const std::size_t tensors = layout_->tensors.size();
    const std::size_t scalars = layout_->scalars.size();
    for (Leaf leaf : part.structure->leaves) {
      leaf.number += static_cast<std::uint32_t>(leaf.kind == LeafKind::kTensor ? tensors : scalars);
      leaf.path.insert(0, path_);
      if (leaf.key.empty()) leaf.key = key;
      structure_.leaves.push_back(std::move(leaf));
    }
    layout_->tensors.insert(layout_->tensors.end(), part.tensors.begin(), part.tensors.end());
    layout_->scalars.insert(layout_->scalars.end(), part.scalars.begin(), part.scalars.end());
    return shifted(part.structure->root, base);
  }

  std::span<const LayoutPtr> parts_;
  std::shared_ptr<Layout> layout_ = std::make_shared<Layout>();
  Structure structure_;
  std::string path_;
};

}  // namespace

Structure::Node nesting_of(std::span<const std::string> names, std::size_t parts) {
  Node out;
  out.kind = names.empty() ? Node::Kind::kTuple : Node::Kind::kDict;
  for (const std::string& name : names) out.keys.push_back(Value::string(name));
  for (std::size_t i = 0; i < parts; ++i) out.children.emplace_back().leaf = static_cast<std::uint32_t>(i);
  return out;
}

LayoutPtr nested_layout(const Structure::Node& nesting, std::span<const LayoutPtr> parts, StructureInterner& interner) {
  return Joined(parts).layout(nesting, interner);
}

LayoutPtr tuple_layout(std::span<const LayoutPtr> parts, StructureInterner& interner) {
  return nested_layout(nesting_of({}, parts.size()), parts, interner);
}

LayoutPtr dict_layout(std::span<const std::string> names, std::span<const LayoutPtr> parts,
                      StructureInterner& interner) {
  return nested_layout(nesting_of(names, parts.size()), parts, interner);
}

std::string_view kind_text(LeafKind kind) noexcept {
  switch (kind) {
    case LeafKind::kTensor:
      return "a tensor";
    case LeafKind::kNone:
      return "None";
    case LeafKind::kBool:
      return "a bool";
    case LeafKind::kInt:
      return "an integer";
    case LeafKind::kFloat:
      return "a float";
    case LeafKind::kComplex:
      return "a complex number";
    case LeafKind::kString:
      return "a string";
    default:
      return "bytes";
  }
}

std::string kind_text(const Node& node, const Structure& structure) {
  switch (node.kind) {
    case Node::Kind::kLeaf:
      return std::string(kind_text(structure.leaves[node.leaf].kind));
    case Node::Kind::kList:
      return core::format("a list of {}", node.children.size());
    case Node::Kind::kTuple:
      return core::format("a tuple of {}", node.children.size());
    default: {
      std::string keys;
      for (const Value& key : node.keys) {
        keys += keys.empty() ? "" : ", ";
        keys += key.is(Value::Kind::kString) ? core::quoted(key.as_string()) : key.to_string();
      }
      return core::format("a dict with the keys {}", keys.empty() ? "(none)" : keys);
    }
  }
}

}  // namespace penstock::data
