#pragma once

// A chain of transforms, made ready for tensors of one layout. A chain is cut into passes, each of which walks its
// source once: it takes up to kChunk elements from wherever they lie, lets the steps (convert, subtract, ...) go over
// them while they are in the first cache, and stores the last step's result in its place. Nearly every chain is one
// pass. A new one begins behind pad and one_hot, whose results are no views of their sources.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/sample/layout.h"
#include "data/transform/op.h"
#include "data/transform/walk.h"

namespace penstock::data {

/// An element that a step refuses: a strict cast of a value that the type has no number for, a class that one_hot does
/// not have. Plain data, because it may come about where nothing may be thrown.
struct Refused {
  std::uint32_t pass = 0;
  std::uint32_t step = 0;
  double value = 0;
};

/// One walk over a source.
class Pass {
 public:
  virtual ~Pass() = default;
  virtual const TensorLayout& output() const noexcept = 0;
  /// Where random numbers decide what it takes: the walk over a sample with these keys. Else nothing.
  virtual std::optional<Walk> draw(const std::uint64_t*) const { return std::nullopt; }
  /// Writes the result, without gaps. `drawn` is what draw() gave for the sample, or null. Owns nothing, because it may
  /// be abandoned at any access to `from`.
  virtual std::optional<Refused> run(const std::byte* from, std::byte* to, const Walk* drawn) const noexcept = 0;
  /// What to tell the user of a refused element.
  virtual std::string explain(const Refused& refused) const = 0;
};

/// Immutable; thread-safe.
class Conversion {
 public:
  /// kDTypeMismatch, kShapeMismatch, kInvalidArgument when a step does not suit the tensor: says which and what to do.
  /// `keeps_order`: the result lies in the order that torch's functions would keep of the input, else in C order.
  Conversion(std::vector<Op> ops, const TensorLayout& input, bool keeps_order = false);

  const std::vector<Op>& ops() const noexcept { return ops_; }
  bool keeps_order() const noexcept { return keeps_order_; }
  const TensorLayout& input() const noexcept { return input_; }
  const TensorLayout& output() const noexcept;
  /// Bytes from the first element of a source to behind its last.
  std::uint64_t input_extent() const noexcept { return input_extent_; }
  /// How many keys the random numbers of a sample have: one for each index by which steps draw.
  std::uint32_t keys() const noexcept { return keys_; }
  /// What random numbers decided for one sample: a walk for each pass that has some. Empty where none has.
  using Drawn = std::vector<std::optional<Walk>>;
  /// `keys` are those of the sample's random numbers.
  Drawn draw(const std::uint64_t* keys) const;
  /// Bytes that `run` wants for what lies between its passes.
  std::uint64_t between() const noexcept { return between_; }

  /// Fills `to` with output().nbytes bytes from a source laid out as input(). `between` has as many bytes as that says.
  /// `drawn` is what draw() gave for the sample. Owns nothing, because it may be abandoned at any access to `from`.
  std::optional<Refused> run(const std::byte* from, std::byte* to, std::byte* between,
                             const Drawn& drawn) const noexcept;
  [[noreturn]] void throw_refused(const Refused& refused) const;

 private:
  std::vector<Op> ops_;
  TensorLayout input_;
  std::vector<std::unique_ptr<const Pass>> passes_;
  std::uint64_t input_extent_ = 0;
  std::uint64_t between_ = 0;
  std::uint32_t keys_ = 0;
  bool keeps_order_;
};

/// A pass of as many of `ops` as go into one, which are taken off the front.
std::unique_ptr<const Pass> make_element_pass(std::span<const Op>& ops, const TensorLayout& input, bool keeps_order);
std::unique_ptr<const Pass> make_one_hot_pass(const OneHotOp& op, const TensorLayout& input);

}  // namespace penstock::data
