#include "ops/operands.h"

#include <fmt/format.h>

#include "penstock/error.h"

namespace penstock::ops {

void require_host(const Tensor& tensor, std::string_view operation) {
  if (tensor.device().type == DeviceType::kCpu) return;
  throw Error(ErrorCode::kDeviceMismatch,
              fmt::format("{} works in host memory, but the tensor is on {}; use to(\"cpu\")", operation,
                          tensor.device().to_string()));
}

void require_writable(const Tensor& tensor, std::string_view operation) {
  require_host(tensor, operation);
  if (!tensor.read_only()) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} would write to memory that may only be read (a mapped file, perhaps); use clone()", operation));
}

void require_same_shape(const Tensor& from, const Tensor& to, std::string_view operation) {
  if (from.shape() == to.shape()) return;
  throw Error(ErrorCode::kShapeMismatch, fmt::format("{} from shape {} to shape {}: equal shapes were expected",
                                                     operation, from.shape().to_string(), to.shape().to_string()));
}

}  // namespace penstock::ops
