#pragma once

// Where the elements of a result come from, for the steps that move elements and compute nothing: permute, crop, flip.
//
// None of them moves anything by itself. Each changes a View (where element (i, j, ...) lies in the array below), so
// that a chain of them is one walk over the source. A parameter of a later or earlier step (a mean for each channel) is
// an array with a View of its own, which the same steps change alike; this is why steps may stand in any order.

#include <cstdint>
#include <span>
#include <vector>

#include "data/transform/op.h"
#include "data/transform/view.h"
#include "penstock/shape.h"

namespace penstock::data {

/// Random bits for one sample. The n-th draw of a sample depends on its key and n alone, not on who asks when.
class Draws {
 public:
  explicit Draws(std::uint64_t key) noexcept : key_(key) {}
  /// Of steps that draw by several keys, which outlive this.
  explicit Draws(const std::uint64_t* keys) noexcept : key_(*keys), keys_(keys) {}
  /// Goes on with draw `next` of the sample, counted from 0.
  void go_to(std::uint64_t next) noexcept { next_ = next; }
  /// The same under key `key`.
  void go_to(std::uint32_t key, std::uint64_t next) noexcept {
    key_ = keys_[key];
    next_ = next;
  }
  /// Uniform in [0, bound); `bound` is at least 1.
  std::int64_t below(std::int64_t bound) noexcept;
  /// Uniform in [0, 1).
  double uniform() noexcept;

 private:
  std::uint64_t key_;
  const std::uint64_t* keys_ = nullptr;
  std::uint64_t next_ = 0;
};

/// Views that are walked together: the source's first, then those of the parameters.
struct Geometry {
  std::vector<std::int64_t> shape;
  std::vector<View> views;

  explicit Geometry(const Shape& sizes, const Strides& strides);
  std::size_t rank() const noexcept { return shape.size(); }
  Shape as_shape() const { return Shape(std::span<const std::int64_t>(shape)); }

  void permute(const PermuteOp& op);
  /// Without `draws`, a random place is the first one: the shape is the same.
  void crop(const CropOp& op, Draws* draws);
  void flip(const FlipOp& op, Draws* draws);
  /// Adds the view of a parameter of `count` values along `dim`; one value stands for all. Returns its number.
  std::size_t add_parameter(std::int64_t dim, std::size_t count);
};

/// The number of a dimension that counts from the end where it is negative. kShapeMismatch when there is none.
std::size_t checked_dim(std::int64_t dim, const std::vector<std::int64_t>& shape, std::string_view what);
/// The dimensions that an op names, each once; where it names none, the last `count`.
std::vector<std::size_t> checked_dims(const Dims& dims, std::size_t count, const std::vector<std::int64_t>& shape,
                                      std::string_view what);

}  // namespace penstock::data
