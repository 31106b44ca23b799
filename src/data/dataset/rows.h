#pragma once

#include <optional>
#include <string_view>

#include "penstock/dataset.h"
#include "penstock/load.h"

namespace penstock::data {

/// What `rows` of a path gives, of an archive that is open: the rows of the tensor `key`, or of its only one where
/// `key` is empty. The errors of `rows`.
Dataset rows_in(const Archive& archive, std::string_view key, std::optional<bool> mmap);

}  // namespace penstock::data
