#pragma once

#include <span>
#include <string>

#include "penstock/dataset.h"

namespace penstock::data {

/// Where files that a zip pairs by their places have names that belong to other places: that in a sentence, and what to
/// do. Else nothing. Names are compared without extensions, and without what all names of a dataset begin and end with
/// ("001_mask" is the mask of "001"). The pairs are suspicious where at least half of the names that differ stand at
/// other places of the other dataset, or where most names agree and some do not. Names that do not say anything (others
/// on both sides) and pairs of the same files are not. One pass over the names where they agree.
std::string unlike_pairs(std::span<const Dataset> parts);

}  // namespace penstock::data
