#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/lengths.h"

namespace penstock::data {

/// sampler::length_buckets of lengths that are known. `name` says what a sample is, for errors.
BatchSampler length_buckets(const std::vector<std::int64_t>& lengths, const LengthBucketOptions& options,
                            const std::function<std::string(std::int64_t)>& name);

}  // namespace penstock::data
