#pragma once

#include "data/files/own_source.h"
#include "data/scan/path_table.h"
#include "penstock/dataset.h"

namespace penstock::data {

/// Samples are the bytes of these files, each a tensor of uint8, whatever they are.
Dataset raw_files(PathTable paths, OwnSource own_source);

}  // namespace penstock::data
