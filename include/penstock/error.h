#pragma once

/// What every Penstock call throws when it fails: one type, Error, with a code, the path, the offset in the file, the
/// tensor's name, and a message that says what to do. Catch `penstock::Error` and look at code().

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/standard.h"

namespace penstock {

/// Every way a Penstock call can fail. The table in src/core/error.cpp gives each code its name and the Python
/// exception it arrives as.
enum class ErrorCode : std::uint8_t {
  // The file system said no.
  kNotFound,
  kIsDirectory,
  kNotDirectory,
  kPermission,
  kIo,
  // The bytes are not what they claim to be.
  kUnknownFormat,  ///< no format recognises the content
  kTruncated,      ///< the file ends before something it declares, or was cut while in use
  kCorrupt,        ///< a rule of the format is broken
  kChecksum,       ///< the bytes do not have their recorded CRC
  kUnsafe,         ///< content that only running code could load (object arrays), or a path that leaves its folder
  kUnsupported,    ///< valid, but a kind Penstock does not read or write
  kLimit,          ///< a budget against hostile input was exceeded
  kChanged,        ///< the file was written to, or another came in its place, while in use
  // The call asked for something that is not there or does not fit.
  kInvalidArgument,
  kKeyNotFound,
  kIndexOutOfRange,
  kDTypeMismatch,
  kShapeMismatch,
  kDeviceMismatch,
  kNoDevice,
  kDeviceFailed,  ///< its driver reported an error, or it was used after fork
  kUserCode,      ///< a function of the program that Penstock called threw; Error::cause() is what
  // Resources and control.
  kOutOfMemory,
  kTimeout,
  kCancelled,
};

/// What the table knows about a code. `name` is the stable identifier ("not_found"), `python` the built-in exception.
struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view name;
  std::string_view python;
};

/// The table's row for `code`. Never fails for an enumerator.
const ErrorCodeInfo& error_code_info(ErrorCode code) noexcept;

/// Where it happened, and the number behind it. Empty fields are unknown and are left out of `what()`, which has the
/// numbers as text.
struct ErrorContext {
  std::string path = {};
  std::optional<std::uint64_t> offset = {};  ///< byte offset in the file
  std::string tensor = {};                   ///< tensor or record name
  std::optional<int> system_error = {};      ///< the errno of the system call that failed
  std::optional<int> http_status = {};       ///< of a URL: the status of the last answer; 0 where none came
};

/// The only exception type that Penstock throws, but for what a function of yours throws where its option says so.
/// `message()` is one sentence: what was found, what was expected and what to do; `what()` adds the context: "PATH:
/// MESSAGE (tensor 'NAME', byte OFFSET)". Copies may be rethrown in other threads, and any thread may call const
/// members.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, ErrorContext context = {});

  ErrorCode code() const noexcept { return code_; }
  const std::string& message() const& noexcept { return message_; }
  const std::string message() const&& { return message_; }
  const std::string& path() const& noexcept { return context_.path; }
  const std::string path() const&& { return context_.path; }
  const std::optional<std::uint64_t> offset() const noexcept { return context_.offset; }
  const std::string& tensor() const& noexcept { return context_.tensor; }
  const std::string tensor() const&& { return context_.tensor; }
  /// The errno of the system call that failed. Ask this, not the text: texts follow the locale, and may be quoted.
  const std::optional<int> system_error() const noexcept { return context_.system_error; }
  /// Of a URL: the HTTP status of the last answer, 0 where none came. None where no request failed.
  const std::optional<int> http_status() const noexcept { return context_.http_status; }
  const char* what() const noexcept override { return what_.c_str(); }
  /// What a function of the program threw, where that is why; else null. std::rethrow_exception gives it back.
  const std::exception_ptr& cause() const& noexcept { return cause_; }
  const std::exception_ptr cause() const&& noexcept { return cause_; }

  /// A copy with the fields of `outer` filled in where this error has none.
  Error within(const ErrorContext& outer) const;
  /// A copy with the path, offset and tensor of `place` instead of its own.
  Error at(ErrorContext place) const;
  /// A copy whose message starts with `prefix` ("sample 17: ").
  Error prefixed(std::string_view prefix) const;
  /// A copy with this cause.
  Error caused_by(std::exception_ptr cause) const;

 private:
  ErrorCode code_;
  std::string message_;
  ErrorContext context_;
  std::string what_;
  std::exception_ptr cause_;
};

}  // namespace penstock
