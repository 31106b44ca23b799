// Arrays whose strides Penstock has no form for are gathered into memory of their own; others are used where they lie.

#include "device/foreign_memory.h"

#include <cstring>
#include <limits>
#include <optional>

#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "penstock/error.h"

namespace penstock::device {
namespace {

void gather(const ForeignArray& array, std::size_t dim, const std::byte* from, std::byte*& to) {
  if (dim == array.shape.rank()) {
    std::memcpy(to, from, array.dtype.itemsize());
    to += array.dtype.itemsize();
    return;
  }
  for (std::int64_t i = 0; i < array.shape[dim]; ++i) gather(array, dim + 1, from + i * array.byte_strides[dim], to);
}

Tensor gathered(const ForeignArray& array) {
  Tensor out = Tensor::empty(array.shape, array.dtype);
  std::byte* to = out.data();
  if (array.dtype.itemsize() > 0) gather(array, 0, array.data, to);
  return out;
}

/// Nothing is ever mapped in the first page, which has this many bytes or more, so that an address there is a null
/// pointer, or one with an offset.
constexpr std::uintptr_t kFirstPage = 4096;

void require_address(const ForeignArray& array) {
  if (array.dtype.itemsize() == 0 || reinterpret_cast<std::uintptr_t>(array.data) >= kFirstPage) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("found an array of shape {} without memory (its address is null); give one whose memory is "
                           "there",
                           array.shape.to_string()));
}

void require_sizes(const ForeignArray& array) {
  for (const std::int64_t size : array.shape) {
    if (size >= 0) continue;
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found an array of shape {}, expected no size below 0", array.shape.to_string()));
  }
}

/// Strides in elements, where they are whole and not negative.
std::optional<Strides> element_strides(const ForeignArray& array) {
  const auto itemsize = static_cast<std::int64_t>(array.dtype.itemsize());
  Strides out;
  for (std::size_t dim = 0; dim < array.shape.rank(); ++dim) {
    const std::int64_t stride = array.shape[dim] > 1 ? array.byte_strides[dim] : itemsize;
    if (itemsize == 0 || stride < 0 || stride % itemsize != 0) return std::nullopt;
    out.push_back(stride / itemsize);
  }
  return out;
}

}  // namespace

Tensor tensor_over(const ForeignArray& array) {
  require_sizes(array);
  if (array.byte_strides.size() != array.shape.rank()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found {} of an array of {}", core::counted(array.byte_strides.size(), "stride"),
                             core::counted(array.shape.rank(), "dimension")));
  }
  if (array.shape.numel() == 0) return Tensor::empty(array.shape, array.dtype, array.device);
  require_address(array);
  const std::optional<Strides> strides = element_strides(array);
  if (!strides && array.device.type != DeviceType::kCpu) {
    throw Error(ErrorCode::kUnsupported,
                core::format("found negative strides on {}; make it contiguous first", array.device.to_string()));
  }
  if (!strides) return gathered(array);
  const auto span = core::view_span(array.shape, *strides, array.dtype.itemsize());
  if (!span) {
    throw Error(ErrorCode::kLimit,
                core::format("found an array of shape {} whose strides reach beyond 63 bits", array.shape.to_string()));
  }
  if (*span > std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(array.data)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("found an array of shape {} that reaches beyond the last address", array.shape.to_string()));
  }
  const Buffer buffer = Buffer::wrap(array.data, *span, array.device, array.owner, array.read_only);
  return Tensor(buffer, array.dtype, array.shape, *strides);
}

}  // namespace penstock::device
