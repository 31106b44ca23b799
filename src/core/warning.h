#pragma once

// What is wrong and stops nobody, in a sentence: the program's function is told, or stderr.

#include <cstdio>
#include <functional>
#include <string>
#include <system_error>

#include "core/format.h"

namespace penstock::core {

/// `warn` may be empty; what it throws is thrown.
inline void tell_warning(const std::function<void(const std::string&)>& warn, const std::string& text) {
  if (warn) return warn(text);
  try {
    core::print(stderr, "penstock: warning: {}\n", text);
  } catch (const std::system_error&) {
    // Nobody reads stderr (it is closed, or a pipe that was left), and a warning stops nobody.
  }
}

}  // namespace penstock::core
