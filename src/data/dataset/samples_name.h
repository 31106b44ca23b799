#pragma once

// By what a position tells a dataset from others of equal size: loaders keep it, and streams of datasets.

#include <string>
#include <string_view>

#include "penstock/dataset.h"

namespace penstock::data {

/// The end of what a sample, or each of its parts, is called: the file, with the key of a tensor in it, and its folder.
/// Of a URL, without what signs it.
std::string ends_of_names(std::string_view names);

/// The names of the first, the last and some samples between: "cats/0001.npy to dogs/0900.npy, 5f0e33c1". Folders above
/// the last one are left out. Empty for a dataset without samples.
std::string samples_name(const Dataset& dataset);

}  // namespace penstock::data
