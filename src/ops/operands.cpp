#include "ops/operands.h"

#include <algorithm>
#include <vector>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::ops {

void require_host(const Tensor& tensor, std::string_view operation) {
  if (tensor.device().type == DeviceType::kCpu) return;
  throw Error(ErrorCode::kDeviceMismatch,
              core::format("{} works in host memory, but the tensor is on {}; use to(\"cpu\")", operation,
                           tensor.device().to_string()));
}

void require_writable(const Tensor& tensor, std::string_view operation) {
  require_host(tensor, operation);
  require_not_read_only(tensor, operation);
}

void require_not_read_only(const Tensor& tensor, std::string_view operation) {
  if (!tensor.read_only()) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      core::format("{} would write to memory that may only be read (a mapped file, perhaps); use clone()", operation));
}

void require_own_elements(const Tensor& tensor) {
  for (std::size_t d = 0; d < tensor.rank(); ++d) {
    if (tensor.strides()[d] != 0 || tensor.shape()[d] < 2) continue;
    throw Error(ErrorCode::kInvalidArgument,
                "the tensor repeats elements, so that a change of one would change others; "
                "use clone()");
  }
}

void require_defined(std::string_view operation, const Argument& argument) {
  if (argument.tensor.defined()) return;
  throw Error(ErrorCode::kInvalidArgument, core::format("{}: {} is an undefined tensor", operation, argument.name));
}

void require_same_device(std::string_view operation, std::span<const Argument> arguments) {
  for (const Argument& argument : arguments) require_defined(operation, argument);
  const Device first = arguments.front().tensor.device();
  const auto other = std::find_if(arguments.begin(), arguments.end(),
                                  [first](const Argument& argument) { return argument.tensor.device() != first; });
  if (other == arguments.end()) return;
  std::vector<std::string_view> names;
  for (const Argument& argument : arguments) names.push_back(argument.name);
  throw Error(ErrorCode::kDeviceMismatch,
              core::format("Expected all tensors to be on the same device, but found at least two devices, {} and {}! "
                           "({}: {})",
                           first.to_string(), other->tensor.device().to_string(), operation, fmt::join(names, ", ")));
}

void require_real_on_device(std::string_view operation, const DType& dtype, Device device) {
  if (device.type == DeviceType::kCpu || !dtype.is_complex()) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("{} of {} on {}: devices compute with real numbers alone; move the tensor to the host by "
                           "cpu(), or compute with torch",
                           operation, dtype.name(), device.to_string()));
}

std::size_t dimension_of(std::int64_t dim, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (dim >= -size && dim < size) return static_cast<std::size_t>(dim < 0 ? dim + size : dim);
  throw Error(ErrorCode::kIndexOutOfRange, core::format("found dimension {}, expected {} to {}", dim, -size, size - 1));
}

void require_same_shape(const Tensor& from, const Tensor& to, std::string_view operation) {
  if (from.shape() == to.shape()) return;
  throw Error(ErrorCode::kShapeMismatch, core::format("{} from shape {} to shape {}: equal shapes were expected",
                                                      operation, from.shape().to_string(), to.shape().to_string()));
}

}  // namespace penstock::ops
