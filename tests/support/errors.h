#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "penstock/error.h"

namespace penstock::test {

/// The Error that `call` throws; a failure of the test, and nothing, when it throws none.
template <class Call>
std::optional<Error> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return std::nullopt;
}

/// The code of the Error that `call` throws.
template <class Call>
std::optional<ErrorCode> code_of(Call&& call) {
  const std::optional<Error> error = error_of(std::forward<Call>(call));
  return error ? std::optional(error->code()) : std::nullopt;
}

}  // namespace penstock::test

namespace penstock {

inline void PrintTo(ErrorCode code, std::ostream* out) { *out << error_code_info(code).name; }

}  // namespace penstock
