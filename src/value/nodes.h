#pragma once

// What lies below a value, wherever a question is asked of all its parts: which tensors, entries or names it leads to.

#include <unordered_set>
#include <vector>

#include "value/graph.h"

namespace penstock {

/// visit(node) for the value's own node and each below it, states included, once however many ways lead there. No
/// recursion, so that neither depth nor circles matter. The last part comes first.
template <class Visit>
void for_each_node(const Value& root, const Visit& visit) {
  std::unordered_set<const ValueGraph::Node*> seen;
  std::vector<const ValueGraph::Node*> open{ValueGraph::node_of(root)};
  while (!open.empty()) {
    const ValueGraph::Node* const node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    visit(*node);
    for (const Value& item : node->items) open.push_back(ValueGraph::node_of(item));
    if (node->state) open.push_back(ValueGraph::node_of(*node->state));
  }
}

}  // namespace penstock
