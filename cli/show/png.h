#pragma once

// `penstock show --png`.

#include <string>

#include "cli/show/colour_map.h"

namespace penstock::cli {

/// The raster as a PNG file, of 8 bits a channel: RGB, or RGBA where it has alpha.
std::string png_of(const Raster& raster);

}  // namespace penstock::cli
