#pragma once

// What a Value is made of. Readers of formats build a graph in an arena, sharing and cycles included, and hand it out
// as one Value.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "penstock/value.h"

namespace penstock {

namespace detail {

/// A node of a Value. Children inside one ValueGraph are non-owning (their graph owns all of them); children given by a
/// caller own their graph. None has a node only inside a graph: elsewhere its handle is empty.
struct ValueNode {
  struct Entry {
    std::size_t index;
  };
  using TensorPtr = std::shared_ptr<const Tensor>;  ///< apart: it would make every node three times as large
  using Scalar = std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string, TensorPtr,
                              Entry, DType>;

  explicit ValueNode(Value::Kind node_kind) noexcept : kind(node_kind) {}
  ValueNode(const ValueNode&) = delete;
  ValueNode& operator=(const ValueNode&) = delete;
  /// Flat: children that only this node keeps are not destroyed within each other, however deep they nest.
  ~ValueNode();

  Value::Kind kind;
  Scalar scalar;
  std::string type_name;
  std::vector<Value> items;  ///< elements; for kDict key, value, key, value ...
  std::unique_ptr<Value> state;
};

}  // namespace detail

/// An arena in which a graph with shared nodes and cycles is built and which owns it: destruction is flat, whatever the
/// depth. Not thread-safe while building; `seal` hands it out.
class ValueGraph {
 public:
  using Node = detail::ValueNode;

  ValueGraph();
  /// A new node; the pointer stays valid while the graph lives.
  Node* add(Value::Kind kind);
  std::size_t size() const noexcept;
  /// A handle for use as a child inside this graph: does not own.
  static Value child(const Node* node);
  /// The node behind a handle; null for a None that is in no graph.
  static const Node* node_of(const Value& value) noexcept;
  /// Whether no other handle on the value, its parts, its tensors or their memory is alive.
  static bool is_alone(const Value& value);
  /// The finished value: owns the whole graph.
  Value seal(const Node* root) const;

 private:
  std::shared_ptr<std::deque<Node>> nodes_;
};

/// A copy of `value` in which every unloaded tensor i is replaced by tensors[i]; sharing and cycles are kept.
/// kInvalidArgument when there is no such tensor.
Value with_tensors(const Value& value, std::span<const Tensor> tensors);

/// A copy of `value` in which the unloaded tensor i is number positions[i]; sharing and cycles are kept.
/// kInvalidArgument when there is no such number.
Value with_entries(const Value& value, std::span<const std::size_t> positions);

/// `value` itself where nobody else can reach its tensors: no other handle on it, its parts, its tensors or their
/// memory is alive. Else a copy of it, with copies of all tensors.
Value without_sharing(Value value);

/// A copy of `value` in which change(tensor) stands for every loaded tensor; sharing and cycles are kept.
Value map_tensors(const Value& value, const std::function<Tensor(const Tensor&)>& change);

}  // namespace penstock
