#pragma once

#include <string>

#include "penstock/error.h"
#include "worker/message.h"

namespace penstock::python {

/// What the program raised, where that is the cause of the error, pickled with its traceback; else nothing.
std::string pickled_cause(const Error& error);
/// The error with the cause that came with it. Any thread, without the GIL.
Error error_with_cause(const ErrorRead& read);

}  // namespace penstock::python
