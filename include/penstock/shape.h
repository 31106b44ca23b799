#pragma once

/// The sizes and strides of a tensor's dimensions: a short list of integers that needs no heap.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "penstock/integer.h"
#include "penstock/standard.h"

namespace penstock {

namespace detail {
[[noreturn]] void throw_no_dimension(std::int64_t dim, std::size_t rank);
}  // namespace detail

/// The sizes of a tensor's dimensions, outermost first; also used for strides, which are in elements. No heap for up to
/// kInline dimensions. A default-constructed Shape is `()`, which has one element. Thread-safe: const members only
/// read.
class Shape {
 public:
  static constexpr std::size_t kInline = 6;
  /// NumPy's and our limit; more is refused with kLimit.
  static constexpr std::size_t kMaxRank = 64;

  Shape() noexcept = default;
  /// `{batch, 3, width}` of any integers.
  Shape(std::initializer_list<Integer> dims) : Shape(dims.begin(), dims.size()) {}
  explicit Shape(std::span<const std::int64_t> dims);
  Shape(const Shape& other) : Shape(other.dims()) {}
  Shape(Shape&& other) noexcept;
  /// Not to a temporary, where it would change nothing.
  Shape& operator=(const Shape& other) &;
  Shape& operator=(Shape&& other) & noexcept;
  ~Shape() = default;

  std::size_t rank() const noexcept { return rank_; }
  /// Valid while this shape lives and is not changed; so a temporary refuses to give them.
  const std::span<const std::int64_t> dims() const& noexcept { return {data(), rank_}; }
  std::span<const std::int64_t> dims() const&& = delete;
  /// Negative dimensions count from the end; kIndexOutOfRange.
  template <detail::IndexLike T>
  std::int64_t operator[](T dim) const& {
    return data()[place(dim)];
  }
  template <detail::IndexLike T>
  std::int64_t& operator[](T dim) & {
    return data()[place(dim)];
  }
  const std::int64_t* begin() const& noexcept { return data(); }
  const std::int64_t* begin() const&& = delete;
  const std::int64_t* end() const& noexcept { return data() + rank_; }
  const std::int64_t* end() const&& = delete;

  void push_back(Integer dim);
  /// The dimensions [first, rank).
  Shape drop_front(Integer first) const;
  /// `dim` in front of this shape.
  Shape prepend(Integer dim) const;

  /// Product of the dimensions; throws kLimit when it does not fit in 63 bits and kCorrupt for a negative dimension.
  std::int64_t numel() const;
  /// C-order strides in elements for this shape (NumPy's and PyTorch's convention: a dimension of size 0 counts as 1).
  Shape contiguous_strides() const;
  /// Fortran-order strides, in elements.
  Shape fortran_strides() const;

  /// "(3, 4)", "(3,)", "()".
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  Shape(const Integer* dims, std::size_t rank);
  template <class T>
  std::size_t place(T dim) const {
    auto at = static_cast<std::size_t>(dim);
    if constexpr (std::is_signed_v<T> || std::is_enum_v<T>) {
      if (dim < 0) at += rank_;
    }
    if (at >= rank_) detail::throw_no_dimension(static_cast<std::int64_t>(dim), rank_);
    return at;
  }
  const std::int64_t* data() const noexcept { return heap_ ? heap_.get() : inline_.data(); }
  std::int64_t* data() noexcept { return heap_ ? heap_.get() : inline_.data(); }

  std::uint32_t rank_ = 0;
  std::uint32_t capacity_ = kInline;
  std::array<std::int64_t, kInline> inline_{};
  std::unique_ptr<std::int64_t[]> heap_;
};

using Strides = Shape;

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace penstock
