#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/sample/user_call.h"
#include "penstock/dataset.h"
#include "penstock/random.h"

namespace penstock::data {

enum class Of : std::uint8_t { kSamples, kBatches };

/// The samples, or the batches, of `dataset` as `function` makes them. `random`: whether it draws from what its key
/// makes. kInvalidArgument for a function of samples behind one of batches.
Dataset mapped(const Dataset& dataset, UserFunction function, Of of, bool random);

/// The generator of one call in C++.
Generator generator_of(const RandomKey& key) noexcept;

/// The most of any of them. `count` is DatasetImpl::draws or DatasetImpl::random_stages.
std::uint32_t most_of(std::span<const Dataset> datasets,
                      std::uint32_t (detail::DatasetImpl::*count)() const noexcept) noexcept;

/// The samples that Dataset::filter keeps.
std::vector<std::int64_t> kept_indices(const Dataset& dataset, std::function<bool(const Value&)> keep,
                                       const FilterOptions& options);

}  // namespace penstock::data
