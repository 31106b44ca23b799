#pragma once

// Errors that say which argument of a call was of a wrong type.

#include <cstdint>
#include <string>

namespace penstock::python {

/// Who made an error.
enum class ErrorBy : std::uint8_t {
  kNanobind,  ///< which took none of the call's arguments
  kPenstock,  ///< a compiled function
  kPython,    ///< what a compiled function called
};

/// `text`, the message of an error of a call of ours, or a sentence that names the argument where one is not what the
/// annotation of the function in penstock/_api says that made the call.
std::string naming_argument(const char* text, ErrorBy by);

}  // namespace penstock::python
