#pragma once

// Dataset::map and map_batches: functions of the program between samples or batches and their collation.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/sample/runner.h"
#include "data/sample/user_call.h"
#include "data/sample/work.h"
#include "penstock/dataset.h"
#include "penstock/random.h"

namespace penstock::data {

enum class Of : std::uint8_t { kSamples, kBatches };

/// Makes the calls of a run of functions of samples, and whatever they need in common around them: a lock that each of
/// them would otherwise take by itself.
using Around = void (*)(const std::function<void()>& calls);

/// The samples, or the batches, of `dataset` as `function` makes them. `random`: whether it draws from what its key
/// makes. Functions of samples with the same `around` that follow each other are called in one. kInvalidArgument for a
/// function of samples behind one of batches.
Dataset mapped(const Dataset& dataset, UserFunction function, Of of, bool random, Around around = nullptr);

/// The generator of one call in C++.
Generator generator_of(const RandomKey& key) noexcept;

/// The most of any of them. `count` is DatasetImpl::draws or DatasetImpl::random_stages.
std::uint32_t most_of(std::span<const Dataset> datasets,
                      std::uint32_t (detail::DatasetImpl::*count)() const noexcept) noexcept;

/// The samples that Dataset::filter keeps: those for which `keep` gives True. `runner` calls it, where there is one.
std::vector<std::int64_t> kept_indices(const Dataset& dataset, UserFunction keep, const FilterOptions& options,
                                       std::shared_ptr<Runner> runner = nullptr, Around around = nullptr);

/// What `runner` makes of those samples, of which `keep` tells whether they are kept. Nothing where the runner does not
/// take all of the functions.
std::optional<std::vector<Called>> judged_by(Runner& runner, const Dataset& samples, const UserFunction& keep,
                                             std::span<const std::int64_t> indices, const Work& work);

}  // namespace penstock::data
