#pragma once

#include <string>

#include "data/scan/path_table.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// The objects that a URL stands for, as `expand` gives the files of a pattern: one object, a folder of a bucket (ends
/// in '/', or has no extension of a sample), or a pattern of keys. Sizes are those of the list, so that nobody asks for
/// them again. kUnsupported for a pattern in no bucket, and for `options.index`.
PathTable expand_url(const std::string& url, const FilesOptions& options);

/// The first key of `pattern`'s that may match, up to where it stands for others: what has to be listed.
std::string fixed_prefix(const std::string& pattern);

}  // namespace penstock::data
