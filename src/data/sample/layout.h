#pragma once

// What one sample looks like, in two parts that samples share: how it is nested (Structure), and which types and shapes
// its tensors have (Layout). Collation is decided from these before anything is read.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/dtype.h"
#include "penstock/shape.h"
#include "penstock/value.h"

namespace penstock::data {

enum class LeafKind : std::uint8_t { kTensor, kNone, kBool, kInt, kFloat, kComplex, kString, kBytes };

/// One end of a sample's nesting.
struct Leaf {
  LeafKind kind = LeafKind::kTensor;
  std::uint32_t number = 0;  ///< among the tensors, or among the scalars, of the sample
  std::string path = {};     ///< "['x'][0]", for messages; empty when the sample is this leaf alone
  std::string key = {};      ///< of the innermost dict around it, empty when there is none

  friend bool operator==(const Leaf&, const Leaf&) = default;
};

/// How a sample is nested, without any value. Immutable once shared; samples of equal nesting share one where they can,
/// so that comparing is mostly comparing pointers.
struct Structure {
  struct Node {
    enum class Kind : std::uint8_t { kLeaf, kList, kTuple, kDict };
    Kind kind = Kind::kLeaf;
    std::uint32_t leaf = 0;  ///< position in `leaves`
    std::string type_name = {};
    std::vector<Value> keys = {};  ///< of a dict, one for each child
    std::vector<Node> children = {};
  };
  Node root;
  std::vector<Leaf> leaves;

  friend bool operator==(const Structure& a, const Structure& b);
};
using StructurePtr = std::shared_ptr<const Structure>;

/// A tensor of a sample as its header describes it.
struct TensorLayout {
  DType dtype;
  Shape shape;
  Strides strides;  ///< of the source, in elements
  std::uint64_t nbytes = 0;
  bool contiguous = true;
  bool dense = true;           ///< its elements fill the bytes from the first to the last of them, in any order
  bool requires_grad = false;  ///< torch's mark, which its batch has too

  TensorLayout(DType type, Shape sizes, Strides steps);
  /// Bytes from its first element to behind its last.
  std::uint64_t extent() const;
};

/// Everything about a sample but its payload. Immutable; equal pointers mean equal layouts.
struct Layout : std::enable_shared_from_this<Layout> {
  StructurePtr structure;
  std::vector<TensorLayout> tensors;
  std::vector<Value> scalars;
};
using LayoutPtr = std::shared_ptr<const Layout>;

/// Keeps one Structure for each different one seen lately. Not thread-safe.
class StructureInterner {
 public:
  StructurePtr intern(Structure structure);

 private:
  std::vector<StructurePtr> seen_;
};

/// The layout of a sample that is one tensor.
LayoutPtr single_tensor_layout(TensorLayout tensor);

/// A tuple of so many parts, or a dict where there are names: its leaves are numbers of parts.
Structure::Node nesting_of(std::span<const std::string> names, std::size_t parts);
/// Samples with these layouts, nested as `nesting` says, whose leaves are their numbers: 0, 1, 2, ...
LayoutPtr nested_layout(const Structure::Node& nesting, std::span<const LayoutPtr> parts, StructureInterner& interner);
/// The tuple of samples with these layouts.
LayoutPtr tuple_layout(std::span<const LayoutPtr> parts, StructureInterner& interner);
/// The dict of samples with these layouts; `names` has a key for each of them.
LayoutPtr dict_layout(std::span<const std::string> names, std::span<const LayoutPtr> parts,
                      StructureInterner& interner);

/// "a list of 2", "the string 'abc'": what a value is, for messages.
std::string kind_text(const Structure::Node& node, const Structure& structure);
std::string_view kind_text(LeafKind kind) noexcept;

}  // namespace penstock::data
