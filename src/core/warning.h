#pragma once

// What is wrong and stops nobody, in a sentence: the program's function is told, or stderr.

#include <cstdio>
#include <functional>
#include <string>

#include "core/format.h"

namespace penstock::core {

/// `warn` may be empty; what it throws is thrown.
inline void tell_warning(const std::function<void(const std::string&)>& warn, const std::string& text) {
  if (warn) return warn(text);
  core::print(stderr, "penstock: warning: {}\n", text);
}

}  // namespace penstock::core
