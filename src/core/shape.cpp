#include "penstock/shape.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "penstock/error.h"

namespace penstock {
namespace {

[[noreturn]] void throw_rank(std::size_t rank) {
  throw Error(ErrorCode::kLimit,
              core::format("{}; at most {} are supported", core::counted(rank, "dimension"), Shape::kMaxRank));
}

[[noreturn]] void throw_too_large(const Shape& shape) {
  throw Error(ErrorCode::kLimit,
              core::format("the elements of shape {} cannot be counted in 63 bits", shape.to_string()));
}

void multiply(std::int64_t& product, std::int64_t dim, const Shape& shape) {
  const auto next = core::try_mul(product, dim);
  if (!next) throw_too_large(shape);
  product = *next;
}

void require_not_negative(const Shape& shape) {
  for (const std::int64_t dim : shape) {
    if (dim < 0) {
      throw Error(ErrorCode::kCorrupt, core::format("shape {} has a negative dimension", shape.to_string()));
    }
  }
}

}  // namespace

namespace detail {
void throw_no_integer(std::uint64_t value) {
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} is no size, dimension or index: expected less than 2^63; it is {} where a smaller "
                           "unsigned number was taken away from a greater one",
                           value, static_cast<std::int64_t>(value)));
}
void throw_no_dimension(std::int64_t dim, std::size_t rank) {
  throw Error(ErrorCode::kIndexOutOfRange,
              core::format("dimension {} of a shape that has {}", dim, core::counted(rank, "dimension")));
}
}  // namespace detail

Shape::Shape(const Integer* dims, std::size_t rank) : Shape(std::span<const std::int64_t>()) {
  if (rank > kMaxRank) throw_rank(rank);
  for (std::size_t i = 0; i < rank; ++i) push_back(dims[i]);
}

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank) throw_rank(dims.size());
  if (dims.size() > kInline) {
    heap_ = std::make_unique<std::int64_t[]>(dims.size());
    capacity_ = static_cast<std::uint32_t>(dims.size());
  }
  rank_ = static_cast<std::uint32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), data());
}

Shape::Shape(Shape&& other) noexcept
    : rank_(std::exchange(other.rank_, 0)),
      capacity_(std::exchange(other.capacity_, std::uint32_t{kInline})),
      inline_(other.inline_),
      heap_(std::move(other.heap_)) {}

Shape& Shape::operator=(const Shape& other) & {
  if (this != &other) *this = Shape(other);
  return *this;
}

Shape& Shape::operator=(Shape&& other) & noexcept {
  if (this == &other) return *this;
  rank_ = std::exchange(other.rank_, 0);
  capacity_ = std::exchange(other.capacity_, std::uint32_t{kInline});
  inline_ = other.inline_;
  heap_ = std::move(other.heap_);
  return *this;
}

void Shape::push_back(Integer dim) {
  if (rank_ == kMaxRank) throw_rank(kMaxRank + 1);
  if (rank_ == capacity_) {
    auto grown = std::make_unique<std::int64_t[]>(kMaxRank);
    std::copy(begin(), end(), grown.get());
    heap_ = std::move(grown);
    capacity_ = kMaxRank;
  }
  data()[rank_++] = dim;
}

Shape Shape::drop_front(Integer first) const {
  if (first < 0) detail::throw_no_dimension(first, rank());
  return Shape(dims().subspan(std::min(static_cast<std::size_t>(std::int64_t{first}), rank())));
}

Shape Shape::prepend(Integer dim) const {
  Shape out{dim};
  for (const std::int64_t d : *this) out.push_back(d);
  return out;
}

std::int64_t Shape::numel() const {
  require_not_negative(*this);
  // Zero elements are zero elements, however large the other dimensions.
  if (std::find(begin(), end(), 0) != end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t dim : *this) multiply(product, dim, *this);
  return product;
}

Shape Shape::contiguous_strides() const {
  require_not_negative(*this);
  Shape strides = *this;
  std::int64_t step = 1;
  for (std::size_t i = rank(); i-- > 0;) {
    strides[i] = step;
    if (i != 0) multiply(step, std::max<std::int64_t>((*this)[i], 1), *this);
  }
  return strides;
}

Shape Shape::fortran_strides() const {
  require_not_negative(*this);
  Shape strides = *this;
  std::int64_t step = 1;
  for (std::size_t i = 0; i < rank(); ++i) {
    strides[i] = step;
    if (i + 1 != rank()) multiply(step, std::max<std::int64_t>((*this)[i], 1), *this);
  }
  return strides;
}

std::string Shape::to_string() const {
  return core::format("({}{})", fmt::join(begin(), end(), ", "), rank() == 1 ? "," : "");
}

bool operator==(const Shape& a, const Shape& b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }

}  // namespace penstock
