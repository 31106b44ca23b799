#pragma once

/// A tensor: a dtype, a shape, strides and a Buffer. Views share memory. Start at Tensor::of, which makes one from
/// values, and at values(), which gives its elements. Arithmetic is in ops.h.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/buffer.h"
#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/shape.h"
#include "penstock/text_view.h"

namespace penstock {

namespace detail {
/// A T that a call gives by value: const where one that has no name can be assigned to, which would change nothing.
/// What looks like a part of an object is given so by all members; results of operations, which are moved from, are
/// not.
template <class T>
using Given = std::conditional_t<std::is_class_v<T> && std::is_assignable_v<T, T>, const T, std::remove_const_t<T>>;
[[noreturn]] void throw_dtype_mismatch(const DType& have, const DType& wanted);
[[noreturn]] void throw_not_contiguous(const Shape& shape, const Strides& strides);
[[noreturn]] void throw_not_aligned(const DType& dtype);
[[noreturn]] void throw_not_host(Device device);
[[noreturn]] void throw_read_only();
[[noreturn]] void throw_not_scalar(const Shape& shape);
}  // namespace detail

/// How Tensor::to moves elements.
struct TransferOptions {
  /// For pinned host memory: return as soon as the copy is submitted to the current stream of the device; the memory is
  /// kept until the copy is done. Pageable memory is always read before to() returns. Copies to the host are always
  /// complete when it returns; Tensor::copy_to gives an Event instead.
  Flag non_blocking = false;
  Flag copy = false;  ///< make a new tensor even when nothing changes
};

class Event;

/// A typed, strided view of a Buffer: a value handle. Copying a Tensor shares its memory; `clone` copies the elements.
/// Strides are in elements and never negative; 0 repeats. Const members may be called from any thread; callers that
/// write through data() must synchronise. data() of a device tensor must not be dereferenced on the host. A tensor that
/// was moved from may only be destroyed or assigned to.
class Tensor {
 public:
  /// An undefined tensor: defined() is false, and nothing else may be called.
  Tensor() noexcept = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  /// Names other memory by this handle, and writes no element; so a temporary refuses it: `t[1] = row` does not
  /// compile, `t[1].copy_from(row)` copies the elements.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  ~Tensor() = default;
  /// A view of `buffer` from `byte_offset`. kShapeMismatch unless every element lies inside the buffer,
  /// kInvalidArgument for a negative size or stride.
  Tensor(Buffer buffer, DType dtype, Shape shape, Strides strides, std::size_t byte_offset = 0);
  /// The same, contiguous in C order.
  Tensor(Buffer buffer, DType dtype, const Shape& shape);

  /// Uninitialised memory, or kOutOfMemory.
  static Tensor empty(const Shape& shape, DType dtype = DType::float32, Device device = {});
  static Tensor zeros(const Shape& shape, DType dtype = DType::float32, Device device = {});
  /// A 1-D tensor of these values, copied: `of({1, 2, 3})`, `of(vector)`, `of(array)`. Texts (UTF-8) become NumPy's
  /// text, as wide as the longest; kInvalidArgument for bytes that are not UTF-8.
  template <class T>
  static Tensor of(std::span<const T> values);
  template <class T>
  static Tensor of(std::initializer_list<T> values) {
    return of(std::span<const T>(values.begin(), values.size()));
  }
  template <std::ranges::contiguous_range Range>
  static Tensor of(const Range& values) {
    return of(std::span<const std::ranges::range_value_t<Range>>(values));
  }
  /// A view of memory of the program, which outlives every handle on it: `view(std::span(pointer, 6), {2, 3})`,
  /// `view(vector, {2, 3})`. Read-only where the elements are const. kShapeMismatch unless the shape has as many
  /// elements.
  template <std::ranges::contiguous_range Range>
  requires std::ranges::borrowed_range<Range>
  static Tensor view(Range&& memory, const Shape& shape) {
    using T = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
    const auto elements = std::span<T>(memory);
    return over(const_cast<std::remove_const_t<T>*>(elements.data()), elements.size(), DType::of<T>(), shape, nullptr,
                std::is_const_v<T>);
  }
  template <std::ranges::contiguous_range Range>
  requires std::ranges::borrowed_range<Range>
  static Tensor view(Range&& memory) {
    return view(std::forward<Range>(memory), Shape{static_cast<std::int64_t>(std::ranges::size(memory))});
  }
  /// A tensor of the vector's elements, which are not copied: the vector is moved from, and lives in the tensor.
  /// kShapeMismatch, before that, unless the shape has as many elements.
  template <class T>
  requires(!std::same_as<T, bool>) static Tensor adopt(std::vector<T>&& values, const Shape& shape) {
    require_fills(shape, values.size());
    const auto owner = std::make_shared<std::vector<T>>(std::move(values));
    return over(owner->data(), owner->size(), DType::of<T>(), shape, owner, false);
  }
  template <class T>
  requires(!std::same_as<T, bool>) static Tensor adopt(std::vector<T>&& values) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    return adopt(std::move(values), shape);
  }

  bool defined() const noexcept { return static_cast<bool>(buffer_); }
  const DType& dtype() const& noexcept { return dtype_; }
  DType dtype() const&& noexcept { return dtype_; }
  const Shape& shape() const& noexcept { return shape_; }
  Shape shape() const&& { return shape_; }
  const Strides& strides() const& noexcept { return strides_; }
  Strides strides() const&& { return strides_; }
  const Device device() const noexcept { return buffer_.device(); }
  bool is_cuda() const noexcept { return device().type == DeviceType::kCuda; }
  bool is_pinned() const noexcept { return buffer_.is_pinned(); }
  const Buffer& buffer() const& noexcept { return buffer_; }
  Buffer buffer() const&& noexcept { return buffer_; }
  std::size_t rank() const noexcept { return shape_.rank(); }
  /// The size of one dimension; negative ones count from the end. kIndexOutOfRange.
  std::int64_t size(Integer dim) const;
  std::int64_t numel() const noexcept { return numel_; }
  /// numel() * itemsize().
  std::size_t nbytes() const noexcept { return static_cast<std::size_t>(numel_) * dtype_.itemsize(); }
  std::size_t byte_offset() const noexcept { return byte_offset_; }
  bool is_contiguous() const noexcept;
  bool read_only() const noexcept { return buffer_.read_only(); }
  /// A flag that is loaded and saved with the tensor in `.pt`; Penstock computes no gradients.
  bool requires_grad() const noexcept { return requires_grad_; }
  Tensor with_requires_grad(Flag value) const;

  /// The address of the first element, valid while any handle on the buffer lives; so a temporary refuses to give it.
  std::byte* data() const& noexcept { return buffer_.data() + byte_offset_; }
  std::byte* data() const&& = delete;
  /// All elements of a contiguous tensor in host memory. kDTypeMismatch when T is not its type. kShapeMismatch when it
  /// is not contiguous, or its address is not aligned for T, as in a view of a file's bytes (`clone` it then).
  /// kDeviceMismatch for device memory. kInvalidArgument for read-only memory unless T is const.
  template <class T>
  const std::span<T> values() const&;
  template <class T>
  std::span<T> values() const&& = delete;
  /// The only element of a tensor with numel() == 1, converted to T; kShapeMismatch. It is rounded, or its fraction cut
  /// off, where T needs that; kInvalidArgument for a value that T has no number for (300 as int8, NaN as int, 1+2i as
  /// double).
  template <class T>
  detail::Given<T> item() const {
    T out{};
    read_item(DType::of<T>(), &out);
    return out;
  }

  /// The element at one index for each dimension: `t.at<float>(i, j)`. Negative indices count from the end. A reference
  /// into host memory, or the value where the tensor is a temporary. T is the tensor's own type (kDTypeMismatch), and
  /// const for read-only memory (kInvalidArgument). kShapeMismatch for another number of indices or an address that is
  /// not aligned for T, kIndexOutOfRange, kDeviceMismatch for device memory.
  template <class T, std::convertible_to<Integer>... Index>
  T& at(Index... index) const& {
    return *reinterpret_cast<T*>(element({std::int64_t{Integer(index)}...}, DType::of<T>(),
                                         {.alignment = alignof(T), .writable = !std::is_const_v<T>}));
  }
  template <class T, std::convertible_to<Integer>... Index>
  detail::Given<T> at(Index... index) const&& {
    return std::as_const(*this).template at<const T>(index...);
  }
  /// The elements of a tensor of texts or bytes (kText, kBytes), in C order, as UTF-8 and as they are. Zeros at the end
  /// are padding, and left out. kDTypeMismatch for other types.
  const std::vector<std::string> strings() const;

  /// Views; the memory is shared. Dimensions and indices may be negative, counting from the end; kIndexOutOfRange
  /// outside.
  Tensor select(Integer dim, Integer index) const;  ///< removes `dim`
  Tensor operator[](Integer index) const { return select(0, index); }
  /// Elements start, start + step, ... below stop of `dim`; out-of-range ends are clipped as in Python; step >= 1.
  Tensor slice(Integer dim, Integer start, Integer stop, Integer step = 1) const;
  /// Dimension i of the result is dimension order[i]. kInvalidArgument unless each is named once.
  Tensor permute(std::span<const std::int64_t> order) const;
  Tensor permute(std::span<const std::size_t> order) const;
  Tensor permute(std::initializer_list<Integer> order) const {
    const Shape named(order);
    return permute(named.dims());
  }
  Tensor transpose(Integer a, Integer b) const;
  /// The same elements under another shape (one -1 is inferred): a view where strides allow it, else a copy.
  Tensor reshape(const Shape& shape) const;

  /// This tensor if it is contiguous, else a contiguous copy.
  Tensor contiguous() const;
  /// Always a new, contiguous copy, on the same device.
  Tensor clone() const;
  /// This tensor if nothing changes, else a converted copy: values are converted as PyTorch does (to integers by
  /// truncation, to halves round-to-nearest-even, to float8 saturating as torch's cast). kUnsupported for types without
  /// numeric meaning.
  Tensor to(const DType& dtype) const;
  /// This tensor if it is there already, else a copy on `target`. The copy runs on the current stream of the device
  /// that takes part.
  Tensor to(Device target, TransferOptions options = {}) const;
  /// Moves and converts, in the order that moves fewer bytes.
  Tensor to(Device target, const DType& dtype, TransferOptions options = {}) const;
  /// The type and device of `other`.
  Tensor to(const Tensor& other, TransferOptions options = {}) const {
    return to(other.device(), other.dtype(), options);
  }
  Tensor cpu() const { return to(Device{}); }
  /// On the calling thread's current device.
  Tensor cuda() const { return to(current_device(DeviceType::kCuda)); }
  Tensor cuda(Integer index) const { return to(Device(DeviceType::kCuda, static_cast<int>(index))); }
  /// This tensor if it is pinned already, else a copy in page-locked host memory. kDeviceMismatch for device memory,
  /// kNoDevice when there is no device that could copy from it.
  Tensor pin_memory() const;
  /// Starts to copy the elements into `target` and returns an event that is done when the target holds them. Both
  /// tensors have the same dtype and shape and are contiguous, and at least one lies on a device; the copy runs on that
  /// device's current stream. Both memories are kept until the event. kInvalidArgument for read-only memory,
  /// kShapeMismatch, kDTypeMismatch.
  Event copy_to(const Tensor& target) const;
  /// Writes the elements of `source` over those of this tensor, for every handle and view on the memory:
  /// `t[1].copy_from(row)`. Both may be strided, of the same memory, and on different devices; it returns when host
  /// memory has been read and written. Types and shapes are equal (kDTypeMismatch, kShapeMismatch). kInvalidArgument
  /// for read-only memory and for a tensor that repeats elements (stride 0).
  void copy_from(const Tensor& source) const;

  /// True when dtype, shape and the bytes of every element agree; strides may differ. NaNs with equal bits are equal.
  static bool identical(const Tensor& a, const Tensor& b);

  /// "Tensor(float32, (3, 4), cpu)". `out << tensor` also writes the elements.
  std::string to_string() const;

 private:
  struct Use {
    std::size_t alignment;
    bool writable;
  };
  std::byte* element(std::initializer_list<std::int64_t> index, const DType& wanted, Use use) const;
  static Tensor of_texts(std::span<const TextView> utf8);
  static void require_fills(const Shape& shape, std::size_t elements);
  static Tensor over(void* data, std::size_t elements, DType dtype, const Shape& shape,
                     std::shared_ptr<const void> owner, bool read_only);
  void read_item(const DType& wanted, void* into) const;

  Buffer buffer_;
  std::size_t byte_offset_ = 0;
  std::int64_t numel_ = 0;
  DType dtype_;
  Shape shape_;
  Strides strides_;
  bool requires_grad_ = false;
};

template <class T>
const std::span<T> Tensor::values() const& {
  if (dtype_ != DType::of<T>()) {
    detail::throw_dtype_mismatch(dtype_, DType::of<T>());
  }
  if (!is_contiguous()) detail::throw_not_contiguous(shape_, strides_);
  if (device().type != DeviceType::kCpu) detail::throw_not_host(device());
  if (!std::is_const_v<T> && read_only()) detail::throw_read_only();
  if (reinterpret_cast<std::uintptr_t>(data()) % alignof(T) != 0) detail::throw_not_aligned(dtype_);
  return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(numel_)};
}

/// Writes the elements, nested in brackets, and then type and shape: "[1, 2.5] float32(2)". Numbers are the shortest
/// decimals that read back as the same value. Of more than 1,000 elements, those at both ends of each dimension are
/// shown. Waits for a device.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

template <class T>
Tensor Tensor::of(std::span<const T> values) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return of_texts(std::vector<TextView>(values.begin(), values.end()));
  } else {
    Tensor out = empty(Shape{static_cast<std::int64_t>(values.size())}, DType::of<T>());
    std::copy(values.begin(), values.end(), out.template values<T>().begin());
    return out;
  }
}

}  // namespace penstock
