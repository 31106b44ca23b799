// A tensor's elements are checked to lie inside its buffer when it is made. Views need no such check: select, slice and
// permute check or clip their arguments, and stay inside what they are views of.

#include "penstock/tensor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "penstock/error.h"

namespace penstock {
namespace {

/// numel elements in bytes, or nothing when that does not fit in 63 bits.
std::optional<std::int64_t> bytes_of(std::int64_t numel, const DType& dtype) {
  return core::try_mul(numel, static_cast<std::int64_t>(dtype.itemsize()));
}

void require_layout(const Shape& shape, const Strides& strides) {
  const auto negative = [](std::int64_t n) { return n < 0; };
  if (std::any_of(shape.begin(), shape.end(), negative)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found shape {}, expected sizes of 0 or more", shape.to_string()));
  }
  if (shape.rank() != strides.rank() || std::any_of(strides.begin(), strides.end(), negative)) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format(
                    "shape {} with strides {} is not a layout: as many strides as sizes and none below 0 were expected",
                    shape.to_string(), strides.to_string()));
  }
}

[[noreturn]] void throw_outside(const Shape& shape, const Strides& strides, const DType& dtype, std::size_t offset,
                                std::size_t size) {
  throw Error(ErrorCode::kShapeMismatch,
              core::format("{} of shape {} with strides {} from byte {} does not lie inside a buffer of {}",
                           dtype.name(), shape.to_string(), strides.to_string(), offset, core::counted(size, "byte")));
}

Strides c_order_of(const Shape& shape) {
  require_layout(shape, shape);
  return shape.contiguous_strides();
}

/// What memory a new tensor needs; a size that nobody can count is memory that nobody has.
std::size_t bytes_to_allocate(const Shape& shape, const DType& dtype) {
  require_layout(shape, shape);
  std::optional<std::int64_t> numel = 1;
  for (const std::int64_t size : shape) {
    if (size == 0) return 0;
    numel = numel ? core::try_mul(*numel, size) : numel;
  }
  const auto bytes = numel ? bytes_of(*numel, dtype) : std::nullopt;
  if (bytes) return static_cast<std::size_t>(*bytes);
  throw Error(ErrorCode::kOutOfMemory, core::format("a {} tensor of shape {} takes more bytes than any machine has",
                                                    dtype.name(), shape.to_string()));
}

}  // namespace

namespace detail {

void throw_dtype_mismatch(const DType& have, const DType& wanted) {
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("the tensor is {}, not {}; convert it with to()", have.name(), wanted.name()));
}

void throw_not_contiguous(const Shape& shape, const Strides& strides) {
  throw Error(ErrorCode::kShapeMismatch,
              core::format("the elements of shape {} with strides {} do not lie one behind the other; use contiguous()",
                           shape.to_string(), strides.to_string()));
}

void throw_not_aligned(const DType& dtype) {
  throw Error(ErrorCode::kShapeMismatch,
              core::format("the tensor's address is not aligned for {}; use clone()", dtype.name()));
}

void throw_not_host(Device device) {
  throw Error(
      ErrorCode::kDeviceMismatch,
      core::format("the tensor is on {}; its elements can be touched on the cpu: use to(\"cpu\")", device.to_string()));
}

void throw_read_only() {
  throw Error(ErrorCode::kInvalidArgument,
              "the memory may only be read (a mapped file, perhaps): take values<const T>(), or clone() the tensor");
}

void throw_not_scalar(const Shape& shape) {
  throw Error(ErrorCode::kShapeMismatch,
              core::format("a tensor of one element was expected, not one of shape {}", shape.to_string()));
}

}  // namespace detail

std::byte* Tensor::element(std::initializer_list<std::int64_t> index, const DType& wanted, Use use) const {
  if (dtype_ != wanted) detail::throw_dtype_mismatch(dtype_, wanted);
  if (index.size() != rank()) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("{} given for a tensor of shape {}; at() takes one for each dimension",
                             core::counted(index.size(), "index was", "indices were"), shape_.to_string()));
  }
  if (device().type != DeviceType::kCpu) detail::throw_not_host(device());
  if (use.writable && read_only()) detail::throw_read_only();
  std::byte* out = data();
  std::size_t dim = 0;
  for (const std::int64_t given : index) {
    const std::int64_t size = shape_[dim];
    const std::int64_t place = given < 0 ? given + size : given;
    if (place < 0 || place >= size) {
      throw Error(ErrorCode::kIndexOutOfRange,
                  core::format("index {} is outside dimension {} of shape {}", given, dim, shape_.to_string()));
    }
    out += place * strides_[dim] * static_cast<std::int64_t>(dtype_.itemsize());
    ++dim;
  }
  if (reinterpret_cast<std::uintptr_t>(out) % use.alignment != 0) detail::throw_not_aligned(dtype_);
  return out;
}

Tensor::Tensor(Buffer buffer, DType dtype, Shape shape, Strides strides, std::size_t byte_offset)
    : buffer_(std::move(buffer)),
      byte_offset_(byte_offset),
      dtype_(std::move(dtype)),
      shape_(std::move(shape)),
      strides_(std::move(strides)) {
  require_layout(shape_, strides_);
  numel_ = shape_.numel();
  const auto span = core::view_span(shape_, strides_, dtype_.itemsize());
  if (!span || !core::range_fits(byte_offset_, *span, buffer_.size())) {
    throw_outside(shape_, strides_, dtype_, byte_offset_, buffer_.size());
  }
  if (!bytes_of(numel_, dtype_)) {
    throw Error(ErrorCode::kLimit, core::format("the bytes of a {} tensor of shape {} cannot be counted in 63 bits",
                                                dtype_.name(), shape_.to_string()));
  }
}

Tensor::Tensor(Buffer buffer, DType dtype, const Shape& shape)
    : Tensor(std::move(buffer), std::move(dtype), shape, c_order_of(shape)) {}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  Buffer buffer = Buffer::allocate(bytes_to_allocate(shape, dtype), device);
  return {std::move(buffer), std::move(dtype), shape};
}

void Tensor::require_fills(const Shape& shape, std::size_t elements) {
  require_layout(shape, shape);
  if (std::cmp_equal(shape.numel(), elements)) return;
  throw Error(ErrorCode::kShapeMismatch,
              core::format("{} given for the shape {}, which has {}",
                           core::counted(elements, "element was", "elements were"), shape.to_string(), shape.numel()));
}

Tensor Tensor::over(void* data, std::size_t elements, DType dtype, const Shape& shape,
                    std::shared_ptr<const void> owner, bool read_only) {
  require_fills(shape, elements);
  return {Buffer::wrap(data, elements * dtype.itemsize(), std::move(owner), read_only), std::move(dtype), shape};
}

bool Tensor::is_contiguous() const noexcept { return core::is_c_order(shape_, strides_); }

Tensor Tensor::with_requires_grad(Flag value) const {
  Tensor out = *this;
  out.requires_grad_ = value;
  return out;
}

Tensor Tensor::select(Integer dim, Integer index) const {
  Tensor out = *this;
  const std::int64_t moved = core::select_view(out.shape_, out.strides_, dim, index);
  out.byte_offset_ += static_cast<std::size_t>(moved) * dtype_.itemsize();
  out.numel_ = out.shape_.numel();
  return out;
}

Tensor Tensor::slice(Integer dim, Integer start, Integer stop, Integer step) const {
  Tensor out = *this;
  const std::int64_t moved = core::slice_view(out.shape_, out.strides_, dim, start, stop, step);
  out.byte_offset_ += static_cast<std::size_t>(moved) * dtype_.itemsize();
  out.numel_ = out.shape_.numel();
  return out;
}

Tensor Tensor::permute(std::span<const std::int64_t> order) const {
  const auto all = static_cast<std::int64_t>(rank());
  std::vector<bool> seen(rank());
  bool valid = order.size() == rank();
  Tensor out = *this;
  for (std::size_t i = 0; valid && i < order.size(); ++i) {
    valid = order[i] >= -all && order[i] < all;
    if (!valid) break;
    const auto dim = static_cast<std::size_t>(order[i] < 0 ? order[i] + all : order[i]);
    valid = !seen[dim];
    seen[dim] = true;
    out.shape_[i] = shape_[dim];
    out.strides_[i] = strides_[dim];
  }
  if (!valid) {
    throw Error(ErrorCode::kInvalidArgument, core::format("({}) does not name each dimension of shape {} once",
                                                          fmt::join(order, ", "), shape_.to_string()));
  }
  return out;
}

Tensor Tensor::permute(std::span<const std::size_t> order) const {
  return permute(std::vector<std::int64_t>(order.begin(), order.end()));
}

Tensor Tensor::transpose(Integer a, Integer b) const {
  Tensor out = *this;
  const std::size_t first = core::dim_of(a, shape_);
  const std::size_t second = core::dim_of(b, shape_);
  std::swap(out.shape_[first], out.shape_[second]);
  std::swap(out.strides_[first], out.strides_[second]);
  return out;
}

std::int64_t Tensor::size(Integer dim) const { return shape_[core::dim_of(dim, shape_)]; }

std::string Tensor::to_string() const {
  if (!defined()) return "Tensor(undefined)";
  return core::format("Tensor({}, {}, {})", dtype_.name(), shape_.to_string(), device().to_string());
}

}  // namespace penstock
