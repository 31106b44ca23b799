#pragma once

// Functions of the program that the data layer calls: what they throw becomes an Error, here and nowhere else.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "core/rethrow.h"
#include "data/sample/sample.h"
#include "penstock/value.h"

namespace penstock::data {

/// Which call it is, and what its random numbers are made from: docs/design/own_code.md.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::int64_t index = 0;                    ///< of the sample, or of the first one of a batch
  std::uint32_t stage = 0;                   ///< how many functions with random numbers came before
  std::span<const std::int64_t> batch = {};  ///< of a batch: the indices of its samples
};

/// A function of samples or of batches. Called by any number of threads at once.
using UserFunction = std::function<Value(const Value&, const RandomKey&)>;

using core::rethrow_as_error;
/// kUnsupported for None, which a function without a result gives.
void require_some(const Value& value, std::string_view who);

/// What `call`, a function of the program, gives.
template <class Call>
Value call_user(std::string_view who, Call&& call) {
  Value out;
  try {
    out = std::forward<Call>(call)();
  } catch (const SampleError&) {
    throw;  // of whoever called for it, and knows which sample it is
  } catch (...) {
    rethrow_as_error(who);
  }
  require_some(out, who);
  return out;
}

}  // namespace penstock::data
