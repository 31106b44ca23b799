#include "penstock/error.h"

#include <array>
#include <utility>

#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"

namespace penstock {
namespace {

using enum ErrorCode;

// In the order of the enumeration, so that a code is its own index.
constexpr std::array kCodes = std::to_array<ErrorCodeInfo>({
    {kNotFound, "not_found", "FileNotFoundError"},
    {kIsDirectory, "is_directory", "IsADirectoryError"},
    {kNotDirectory, "not_directory", "NotADirectoryError"},
    {kPermission, "permission", "PermissionError"},
    {kIo, "io", "OSError"},
    {kUnknownFormat, "unknown_format", "ValueError"},
    {kTruncated, "truncated", "ValueError"},
    {kCorrupt, "corrupt", "ValueError"},
    {kChecksum, "checksum", "ValueError"},
    {kUnsafe, "unsafe", "ValueError"},
    {kUnsupported, "unsupported", "ValueError"},
    {kLimit, "limit", "ValueError"},
    {kChanged, "changed", "OSError"},
    {kInvalidArgument, "invalid_argument", "ValueError"},
    {kKeyNotFound, "key_not_found", "KeyError"},
    {kIndexOutOfRange, "index_out_of_range", "IndexError"},
    {kDTypeMismatch, "dtype_mismatch", "TypeError"},
    {kShapeMismatch, "shape_mismatch", "ValueError"},
    {kDeviceMismatch, "device_mismatch", "RuntimeError"},
    {kNoDevice, "no_device", "RuntimeError"},
    {kDeviceFailed, "device_failed", "RuntimeError"},
    {kUserCode, "user_code", "RuntimeError"},
    {kOutOfMemory, "out_of_memory", "MemoryError"},
    {kTimeout, "timeout", "TimeoutError"},
    {kCancelled, "cancelled", "RuntimeError"},
});

constexpr bool has_each_code() {
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    if (kCodes[i].code != static_cast<ErrorCode>(i)) return false;
  }
  return kCodes.back().code == kCancelled;
}
static_assert(has_each_code(), "one row for each ErrorCode, in its order");

std::string describe(const std::string& message, const ErrorContext& context) {
  std::string out;
  if (!context.path.empty()) out = core::escaped(context.path) + ": ";
  out += message;
  std::string where;
  if (!context.tensor.empty()) where = "tensor " + core::quoted(context.tensor);
  if (context.offset) where += core::format("{}byte {}", where.empty() ? "" : ", ", *context.offset);
  return where.empty() ? out : core::format("{} ({})", out, where);
}

}  // namespace

const ErrorCodeInfo& error_code_info(ErrorCode code) noexcept { return kCodes[static_cast<std::size_t>(code)]; }

Error::Error(ErrorCode code, std::string message, ErrorContext context)
    : code_(code), message_(core::without_secrets(message)), context_(std::move(context)) {
  context_.path = core::shown_path(context_.path);
  what_ = describe(message_, context_);
}

Error Error::within(const ErrorContext& outer) const {
  ErrorContext context = context_;
  if (context.path.empty()) context.path = outer.path;
  if (!context.offset) context.offset = outer.offset;
  if (context.tensor.empty()) context.tensor = outer.tensor;
  if (!context.system_error) context.system_error = outer.system_error;
  if (!context.http_status) context.http_status = outer.http_status;
  return Error(code_, message_, std::move(context)).caused_by(cause_);
}

Error Error::at(ErrorContext place) const {
  place.system_error = context_.system_error;
  place.http_status = context_.http_status;
  return Error(code_, message_, std::move(place)).caused_by(cause_);
}

Error Error::prefixed(std::string_view prefix) const {
  return Error(code_, std::string(prefix) + message_, context_).caused_by(cause_);
}

Error Error::caused_by(std::exception_ptr cause) const {
  Error out = *this;
  out.cause_ = std::move(cause);
  return out;
}

}  // namespace penstock
