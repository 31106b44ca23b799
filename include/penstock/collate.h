#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/standard.h"

namespace penstock {

namespace detail {
class CollateRule;
}

/// How the samples of a batch become one: decided from headers, before any payload is read. A value handle on an
/// immutable rule. Samples of one batch must have the same structure (keys, lengths of tuples, kinds of leaves):
/// kShapeMismatch names the two samples otherwise. Under every rule but `samples` integers become an int64 tensor,
/// floats float64, booleans bool; strings and bytes stay a list.
class Collate {
 public:
  explicit Collate(std::shared_ptr<const detail::CollateRule> rule) : rule_(std::move(rule)) {}
  const detail::CollateRule& rule() const noexcept { return *rule_; }

 private:
  std::shared_ptr<const detail::CollateRule> rule_;
};

/// Tensors of equal dtype and shape become one with a new dimension 0; kShapeMismatch or kDTypeMismatch names the first
/// sample that differs and suggests `pad`.
Collate stack();

enum class PadMode : std::uint8_t {
  kConstant,   ///< PadOptions::value
  kReflect,    ///< mirrored without repeating the edge, again and again if need be; needs two elements or more
  kReplicate,  ///< the last element again; needs one element or more
};

struct PadOptions {
  std::int64_t dim = 0;  ///< of the sample; negative counts from its last
  PadMode mode = PadMode::kConstant;
  double value = 0;
  /// Make the tensor a dict {"values", "lengths"?, "mask"?}: lengths is int64 (batch,), what each sample has after
  /// truncation; mask is bool (batch, length), true on a sample's own elements.
  bool lengths = false;
  bool mask = false;
  /// Only these keys of a dict sample are padded, the others stacked; empty: every tensor that has dimension `dim`.
  std::vector<std::string> keys = {};
};

/// Pads dimension `dim` at its end to the longest of the batch, then stacks.
Collate pad(const PadOptions& options = {});
/// Pads or cuts dimension `dim` at its end to `length` >= 0, then stacks; bytes beyond the cut are not read.
Collate pad_to(std::int64_t length, const PadOptions& options = {});
/// Keeps tensors apart: each becomes a list of tensors, which lie in one block.
Collate ragged();
/// Keeps samples apart: the batch is a list of them as they are, scalars too, whether or not they have one structure;
/// their tensors lie in one block.
Collate samples();

}  // namespace penstock
