#pragma once

/// Parts, repetitions and mixtures of datasets, and choices between them. None of them reads or copies a sample.

#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/dataset.h"

namespace penstock {

/// The first `count` samples, or all where there are fewer. kInvalidArgument below 0.
Dataset take(const Dataset& dataset, Integer count);
/// All but the first `count` samples; none where there are fewer. kInvalidArgument below 0.
Dataset skip(const Dataset& dataset, Integer count);
/// All samples, so many times one behind the other. Random steps below draw the same for each; those that follow draw
/// anew. kInvalidArgument below 0, and beyond 63 bits of samples.
Dataset repeat(const Dataset& dataset, Integer times);

/// When a mixture ends, unless its size is given.
enum class MixEnd : std::uint8_t {
  kFirst,  ///< before a dataset would have to give a sample again
  kAll,    ///< when every dataset has given all of its samples; those that are used up begin again
};

struct MixOptions {
  MixEnd end = MixEnd::kFirst;
  /// Samples of the mixture; excludes `end`.
  std::optional<Integer> size = {};
};

/// Samples of several datasets in shares of these weights (any numbers above 0; of a weight of 0 comes nothing). The
/// shares are exact: of the first n samples, every dataset has given less than one more or less than its share of n.
/// Each gives its samples in their order. The order depends on sizes and weights alone; where it repeats within a
/// million samples, as with whole weights, only that part of it is kept in memory. Shuffle the datasets before
/// (sampler::subset), or the mixture as any dataset. kInvalidArgument for weights that are negative, not finite, or all
/// zero, for a number of them that is not that of the datasets, and where a dataset without samples would have to give
/// some.
Dataset mix(const std::vector<Dataset>& datasets, const std::vector<double>& weights, const MixOptions& options = {});

/// Sample i is sample i of one of several datasets of equal size, which is drawn with these weights: one of the
/// captions of image i, or one of its augmentations. It is drawn from the loader's seed, the epoch and i, as the place
/// of Dataset::random_crop is: the same for any number of workers and ranks and in a resumed run, and another one in
/// the next epoch. Choices that are zipped draw alike where their weights and the random steps below them are alike;
/// one of choices draws independently of these. `get` draws as epoch 0 of seed 0. No weights: all are equal.
/// kShapeMismatch for datasets of unequal sizes; kInvalidArgument for weights as of `mix`. Headers do not tell which
/// one is drawn, so lengths, and `promote`, are those of the datasets: kUnsupported of a choice.
Dataset choice(const std::vector<Dataset>& datasets, const std::vector<double>& weights = {});

}  // namespace penstock
