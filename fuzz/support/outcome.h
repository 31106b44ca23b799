#pragma once

#include <optional>
#include <string>
#include <utility>

#include "penstock/error.h"
#include "support/require.h"

namespace penstock::fuzz {

/// What a call gave: a value, or why not. Any exception but Error passes through and ends the program.
template <class T>
struct Outcome {
  std::optional<T> value;
  std::optional<Error> error;

  bool ok() const noexcept { return value.has_value(); }
  bool failed_by(ErrorCode code) const noexcept { return error && error->code() == code; }
  std::string text() const { return error ? error->what() : "a value"; }
};

template <class Call>
auto attempt(Call call) {
  Outcome<decltype(call())> out;
  try {
    out.value = call();
  } catch (const Error& error) {
    require(!error.message().empty(), "an error without a message");
    out.error = error;
  }
  return out;
}

}  // namespace penstock::fuzz
