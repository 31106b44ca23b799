#pragma once

#include <string>

#include "penstock/value.h"

namespace penstock::fuzz {

struct SameOptions {
  bool states = true;  ///< what BUILD gave objects and dicts
  /// Of tensors: requires_grad, where the type can have a gradient, and that they are parameters.
  bool marks = true;
  /// That tensors and lists are NumPy's arrays; nothing that Penstock writes, and no sample, says so.
  bool arrays = true;
};
/// The values alone, which are all that a sample keeps.
inline constexpr SameOptions kValuesAlone{.states = false, .marks = false, .arrays = false};

/// Empty where the two are the same in every bit, but for the strides of tensors and for which nodes are shared; else
/// the first difference. Graphs with cycles end.
std::string difference_of(const Value& a, const Value& b, const SameOptions& options = {});
std::string difference_of(const Tensor& a, const Tensor& b, const SameOptions& options = {});

}  // namespace penstock::fuzz
