#pragma once

// Failed system calls as errors. The texts and the advice are one table, so that the same trouble reads the same
// everywhere.

#include <string_view>

#include "penstock/error.h"

namespace penstock::core {

/// The code that says best what the system's error number means; kIo where there is no better one.
ErrorCode code_of_errno(int err) noexcept;

/// Throws the Error for a failed system call. `what`: the attempt ("cannot open the file"); the message adds the
/// system's text and, where one is known, what to do. Error::system_error() is `err`.
[[noreturn]] void throw_errno(int err, std::string_view what, ErrorContext context = {});

}  // namespace penstock::core
