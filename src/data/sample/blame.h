#pragma once

// Whether an error tells of a sample, which may be left out, or of something that others share: then leaving samples
// out would hide it.

#include <cstddef>
#include <cstdint>

#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock::data {

class Scratch;
struct CallContext;
struct Sample;

/// Samples one behind the other that may be left out. More of them are taken for an outage.
inline constexpr std::size_t kMostInARow = 100;

/// Whether the error is one of the process (no memory left), or of the store that samples come from (expired keys, a
/// server that does not answer): what is missing now may be there later.
bool is_of_surroundings(const Error& error);

/// `error` of a sample with its number and name in front.
Error of_sample(const Error& error, const Dataset& dataset, std::int64_t index);

/// Says in `out` that the sample at `position` cannot be had (Sample::failed), where the call sets samples aside and
/// the error is of the sample; else throws SampleError.
void fail(Sample& out, std::size_t position, const Error& error, const CallContext& call, Scratch& scratch);

/// `error`, of the last of so many samples in a row that cannot be had.
Error outage(const Error& error, std::size_t samples);

}  // namespace penstock::data
