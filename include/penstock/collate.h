#pragma once

/// How the samples of a batch become one value. The factories in namespace `collate` make the rules; give one to
/// LoaderOptions::collate. Start at `collate::stack`, the default, and use `collate::pad` when samples differ in
/// length.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/detail/functions.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/value.h"

namespace penstock {

namespace detail {
class CollateRule;
}

/// How the samples of a batch become one: decided from headers, before any payload is read. A value handle on an
/// immutable rule. Samples of one batch must have the same structure (keys, lengths of tuples, kinds of leaves);
/// kShapeMismatch names the first two that differ. Integers become an int64 tensor, floats float64, booleans bool;
/// strings and bytes become a list. `collate::samples` alone keeps everything as it is.
class Collate {
 public:
  /// collate::stack().
  Collate();
  /// For the library itself.
  explicit Collate(std::shared_ptr<const detail::CollateRule> rule) : rule_(std::move(rule)) {}
  const detail::CollateRule& rule() const& noexcept { return *rule_; }
  const detail::CollateRule& rule() const&& = delete;

  Collate(const Collate&) = default;
  Collate(Collate&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Collate& operator=(const Collate&) & = default;
  Collate& operator=(Collate&&) & noexcept = default;
  ~Collate() = default;

 private:
  std::shared_ptr<const detail::CollateRule> rule_;
};

enum class PadMode : std::uint8_t {
  kConstant,   ///< PadOptions::value
  kReflect,    ///< mirrored without repeating the edge, again and again if need be; needs two elements or more
  kReplicate,  ///< the last element again; needs one element or more
};

struct PadOptions {
  Integer dim = 0;  ///< of the sample; negative counts from its last
  /// Several dimensions in place of `dim`: images of different height and width. Negative ones count from the last.
  std::vector<std::int64_t> dims = {};
  PadMode mode = PadMode::kConstant;
  double value = 0;
  /// Make the tensor a dict {"values", "lengths"?, "mask"?}. lengths is int64 of shape (batch,): what each sample has
  /// after truncation; with `dims` or a list of sizes of shape (batch, dimensions). mask is bool of shape (batch,
  /// length), or (batch, length, length, ...): true on a sample's own elements.
  Flag lengths = false;
  Flag mask = false;
  /// Pad only these keys of a dict sample and stack the others; empty: pad every tensor that has dimension `dim`.
  std::vector<std::string> keys = {};
};

struct RaggedOptions {
  /// Join tensors in place of keeping them apart: each becomes a dict {"values", "cu_seqlens", "max_seqlen"} as
  /// attention over sequences of different length takes it. values is all of them one behind the other along dimension
  /// 0. cu_seqlens is int32 of shape (batch + 1,): sample i has the rows from cu_seqlens[i] to cu_seqlens[i + 1].
  /// max_seqlen is an integer, the rows of the longest. Tensors without dimensions are stacked.
  Flag cu_seqlens = false;
  /// Join only these keys of a dict sample and stack the others; empty: join every tensor that has a dimension. Only
  /// with cu_seqlens.
  std::vector<std::string> keys = {};
};

namespace detail {
Collate collate_of(std::function<Value(const std::vector<Value>& samples)> make);
}

namespace collate {

/// Tensors of equal dtype and shape become one with a new dimension 0. kShapeMismatch or kDTypeMismatch names the first
/// sample that differs and suggests `pad`.
Collate stack();
/// Pads dimension `dim` (or each of `dims`) at its end to the longest of the batch, then stacks.
Collate pad(const PadOptions& options = {});
/// Pads or cuts dimension `dim` at its end to `length` >= 0, then stacks. Bytes beyond the cut are not read.
Collate pad_to(Integer length, const PadOptions& options = {});
/// Pads `dims`, or without them the last dimensions, at their ends to these sizes, then stacks. Nothing is cut:
/// kShapeMismatch names the first sample that is larger. kInvalidArgument unless there is a size, 0 or more, for each
/// dimension.
Collate pad_to(const std::vector<std::int64_t>& sizes, const PadOptions& options = {});
/// Keeps tensors apart: each becomes a list of tensors, which lie in one block of memory. With
/// RaggedOptions::cu_seqlens they are one tensor: kShapeMismatch where they differ in more than dimension 0,
/// kDTypeMismatch, kInvalidArgument for more rows than an int32 counts.
Collate ragged(const RaggedOptions& options = {});
/// Keeps samples apart: the batch is a list of the samples as they are, with their scalars, whether or not they have
/// one structure. Their tensors lie in one block of memory.
Collate samples();
/// What `make` makes of the samples of a batch, which it gets as collate::samples() gives them: a function of your own,
/// called in the loader's worker threads, several at once. It gives any Value but None, in host memory; with
/// LoaderOptions::device, what it gives is moved there. What it throws belongs to the batch, as dataset.h says.
/// It is moved and never copied, so that it may hold what only moves.
template <detail::BatchMaker Function>
Collate function(Function make) {
  return detail::collate_of([f = detail::kept(std::move(make))](const std::vector<Value>& samples) {
    return detail::as_value((*f)(samples));
  });
}

}  // namespace collate

}  // namespace penstock
