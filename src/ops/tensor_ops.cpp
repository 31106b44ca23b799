#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "device/queue.h"
#include "ops/elements.h"
#include "ops/kernels.h"
#include "ops/overflow.h"
#include "ops/transfer.h"
#include "penstock/error.h"
#include "penstock/tensor.h"

namespace penstock {
namespace {

/// Puts the size in place of the one -1.
Shape resolve(const Shape& wanted, std::int64_t numel) {
  Shape out = wanted;
  std::optional<std::size_t> unknown;
  std::optional<std::int64_t> known = 1;
  for (std::size_t d = 0; d < wanted.rank(); ++d) {
    if (wanted[d] == -1 && !unknown) {
      unknown = d;
    } else if (wanted[d] < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("shape {} has a negative size; one -1 stands for what is left", wanted.to_string()));
    } else if (known) {
      known = core::try_mul(*known, wanted[d]);
    }
  }
  const bool divides = known && (unknown ? *known != 0 && numel % *known == 0 : *known == numel);
  if (!divides) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("{} cannot take the shape {}", core::counted(static_cast<std::uint64_t>(numel), "element"),
                             wanted.to_string()));
  }
  if (unknown) out[*unknown] = numel / *known;
  return out;
}

/// Strides that give `shape` to the elements where they lie, if there are any. From the innermost outward, old
/// dimensions that continue each other make a chunk; new dimensions must fill each chunk exactly. The tensor is not
/// contiguous and so not empty.
std::optional<Strides> strides_for_view(const Tensor& tensor, const Shape& shape) {
  Shape sizes;
  Strides steps;
  for (std::size_t d = 0; d < tensor.rank(); ++d) {
    if (tensor.shape()[d] == 1) continue;
    sizes.push_back(tensor.shape()[d]);
    steps.push_back(tensor.strides()[d]);
  }
  Strides out = shape;
  std::size_t rest = shape.rank();
  std::int64_t chunk = 1;
  std::int64_t innermost = steps[steps.rank() - 1];
  for (std::size_t d = sizes.rank(); d-- > 0;) {
    chunk *= sizes[d];
    if (d > 0 && steps[d - 1] == chunk * innermost) continue;
    std::int64_t filled = 1;
    while (rest > 0 && (filled < chunk || shape[rest - 1] == 1)) {
      out[--rest] = filled * innermost;
      filled *= shape[rest];
    }
    if (filled != chunk) return std::nullopt;
    if (d > 0) innermost = steps[d - 1];
    chunk = 1;
  }
  return out;
}

bool keeps_gradients(const DType& dtype) { return dtype.is_floating() || dtype.is_complex(); }

}  // namespace

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  Tensor out = empty(shape, std::move(dtype), device);
  if (out.nbytes() == 0) return out;
  if (device.type == DeviceType::kCpu) {
    const Tensor bytes(out.buffer(), DType::uint8, Shape{static_cast<std::int64_t>(out.nbytes())});
    ops::fill(bytes, std::array<std::byte, 1>{});
    return out;
  }
  const Stream stream = Stream::current(device);
  StreamAccess::queue(stream)->fill(out.data(), std::byte{0}, out.nbytes());
  out.buffer().record_use(stream, Buffer::Access::kWrite);
  return out;
}

Tensor Tensor::reshape(const Shape& shape) const {
  const Shape wanted = resolve(shape, numel_);
  const std::optional<Strides> strides =
      is_contiguous() ? wanted.contiguous_strides() : strides_for_view(*this, wanted);
  if (!strides) return clone().reshape(wanted);
  return Tensor(buffer_, dtype_, wanted, *strides, byte_offset_).with_requires_grad(requires_grad_);
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::clone() const {
  const Tensor out = empty(shape_, dtype_, device());
  if (device().type == DeviceType::kCpu || !is_contiguous()) {
    ops::copy(*this, out);
  } else {
    ops::submit(std::array{ops::Transfer{ops::span_of(*this), out.buffer()}});
  }
  return out.with_requires_grad(requires_grad_);
}

Tensor Tensor::to(const DType& dtype) const {
  if (dtype == dtype_) return *this;
  const Tensor out = empty(shape_, dtype, device());
  ops::cast(*this, out);
  return out.with_requires_grad(requires_grad_ && keeps_gradients(dtype));
}

void Tensor::read_item(const DType& wanted, void* into) const {
  if (numel_ != 1) detail::throw_not_scalar(shape_);
  const Tensor host = to(Device{});
  const bool converts = wanted != dtype_ && wanted.is_numeric() && dtype_.is_numeric();
  if (converts && ops::find_overflow(dtype_.code(), host.data(), wanted.code(), 1) == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} has no number for the element {}; ask for a type that has", wanted.name(),
                             ops::ElementPrinter(host).text(0)));
  }
  const Tensor converted = host.to(wanted);
  std::memcpy(into, converted.data(), wanted.itemsize());
  // A file's true may be any byte but 0, which a C++ bool may not.
  if (wanted == DType::boolean) *static_cast<bool*>(into) = *converted.data() != std::byte{0};
}

bool Tensor::identical(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.nbytes() == 0) return true;
  const Tensor left = a.to(Device{}).contiguous();
  const Tensor right = b.to(Device{}).contiguous();
  return std::memcmp(left.data(), right.data(), left.nbytes()) == 0;
}

}  // namespace penstock
