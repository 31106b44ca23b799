#pragma once

#include <functional>
#include <string>

#include "data/scan/path_table.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// Samples are the bytes of these files, each a tensor of uint8, whatever they are. `root` finds the folder that they
/// were listed below.
Dataset raw_files(PathTable paths, std::function<std::string()> root, const FilesOptions& options);

}  // namespace penstock::data
