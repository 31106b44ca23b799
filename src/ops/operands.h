#pragma once

// What operations demand of their tensors, and the errors in torch's words, so that users find them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "penstock/tensor.h"

namespace penstock::ops {

/// Whether work on this tensor is the host's.
inline bool on_host(const Tensor& tensor) noexcept { return tensor.device().type == DeviceType::kCpu; }
/// kInvalidArgument when its memory may only be read.
void require_not_read_only(const Tensor& tensor, std::string_view operation);
/// kDeviceMismatch unless the tensor is in host memory.
void require_host(const Tensor& tensor, std::string_view operation);
/// And kInvalidArgument when its memory may only be read.
void require_writable(const Tensor& tensor, std::string_view operation);
/// kInvalidArgument for a tensor that repeats elements, of which a change of one would change others.
void require_own_elements(const Tensor& tensor);
/// An argument of an operation by its name in messages.
struct Argument {
  std::string_view name;
  const Tensor& tensor;
};
/// kInvalidArgument for an undefined tensor.
void require_defined(std::string_view operation, const Argument& argument);
/// kInvalidArgument for undefined tensors, kDeviceMismatch, naming two devices and the arguments, unless all are on
/// one. "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (matmul: a,
/// b)".
void require_same_device(std::string_view operation, std::span<const Argument> arguments);
/// kUnsupported for complex numbers on a device, where they are stored, moved, cast, copied and indexed alone.
void require_real_on_device(std::string_view operation, const DType& dtype, Device device);
/// `dim` counted from the front; kIndexOutOfRange outside [-rank, rank). A tensor without dimensions has one here.
std::size_t dimension_of(std::int64_t dim, std::size_t rank);
/// kShapeMismatch, naming both.
void require_same_shape(const Tensor& from, const Tensor& to, std::string_view operation);

}  // namespace penstock::ops
