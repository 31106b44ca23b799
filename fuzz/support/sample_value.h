#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "penstock/value.h"

namespace penstock::fuzz {

/// Whether what a file holds can be a sample.
enum class SampleFit : std::uint8_t {
  kGood,
  kRefused,  ///< it holds objects, sets or itself, or is nested too deep
  kHuge,     ///< more parts than are worth the time
};
SampleFit fit_of(const Value& content);

/// Whether a tensor in `sample` has a type that batches do not take.
bool has_opaque_tensor(const Value& sample);

/// Empty where sample `at` of a stacked batch is this sample; else the first difference. `length`: what tensors were
/// padded or cut to in their first dimension.
std::string difference_in_batch(const Value& batch, std::size_t at, const Value& sample,
                                std::optional<std::size_t> length = {});

}  // namespace penstock::fuzz
