#pragma once

// `penstock show`: pixels in a terminal, by whichever protocol it speaks.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/show/colour_map.h"

namespace penstock::cli {

/// How a picture is written to a terminal or a text file.
enum class ImageWay : std::uint8_t {
  kAscii,
  kShades,      ///< blocks of Unicode in five shades, without escapes
  kBlocks256,   ///< two pixels a character, in the 256 colours of xterm
  kBlocksTrue,  ///< in 24 bits
  kKitty,
  kSixel,
};

/// The way for stdout: the one of that name (kitty, sixel, blocks, ascii), else what its terminal and the environment
/// suggest.
ImageWay image_way(const std::optional<std::string>& wanted);
std::string_view name_of(ImageWay way) noexcept;
/// Whether a pixel is a whole character, about twice as high as wide.
bool is_character(ImageWay way) noexcept;
/// Whether it is drawn in true pixels, many to a character.
bool has_pixels(ImageWay way) noexcept;

/// With a newline at its end.
std::string terminal_image(const Raster& raster, ImageWay way);

}  // namespace penstock::cli
