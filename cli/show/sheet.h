#pragma once

// `penstock show`: pictures beside each other.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cli/show/colour_map.h"
#include "cli/show/number_source.h"
#include "cli/show/reading.h"

namespace penstock::cli {

/// Pictures that are drawn beside each other.
inline constexpr std::int64_t kMostPictures = 64;

/// The room that pictures are drawn in, in pixels.
struct Canvas {
  std::size_t width = 80;
  std::size_t height = 80;
  std::size_t most_pixels = std::size_t{1} << 20;  ///< of all pictures together, before they are enlarged
  std::size_t enlarge_to = 0;                      ///< what is smaller is enlarged by a whole number up to there
  std::size_t strip_height = 1;                    ///< of a tensor of one dimension
  bool is_tall = false;                            ///< pixels are characters, about twice as high as wide
};

/// Where the pictures of a tensor are drawn: `across` in a row, one pixel between them.
struct Sheet {
  std::size_t shown = 1;  ///< of the pictures that there are, from the first on
  std::size_t across = 1;
  std::size_t width = 1;  ///< of one picture, before it is enlarged
  std::size_t height = 1;
  std::size_t zoom_x = 1;
  std::size_t zoom_y = 1;
};

Sheet lay_out(const Reading& reading, const Canvas& canvas);

struct Drawn {
  Raster raster;
  Seen seen;
  Colouring colouring;
  long double base = 0;
};

/// Reads and draws. Where no picture is needed, `wanted` is false and the raster is empty.
Drawn draw(NumberSource& source, const DType& dtype, const Reading& reading, const Sheet& sheet,
           const std::optional<NumberRange>& range, bool wanted);

}  // namespace penstock::cli
