#pragma once

// `penstock show`: numbers as colours, and pictures as pixels.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/show/picture.h"
#include "penstock/dtype.h"

namespace penstock::cli {

using Rgb = std::array<std::uint8_t, 3>;

inline constexpr Rgb kNaNColour{255, 0, 255};
inline constexpr Rgb kInfiniteColour{0, 255, 0};

struct NumberRange {
  long double low = 0;
  long double high = 1;
};

enum class ColourMap : std::uint8_t { kGrey, kViridis, kDiverging, kColour };

/// How numbers become colours.
struct Colouring {
  ColourMap map = ColourMap::kGrey;
  NumberRange range;
  bool has_alpha = false;

  std::string_view name() const noexcept;
};
bool are_alike(const Colouring& a, const Colouring& b) noexcept;

/// The colouring for elements of that type; `seen` is less `base`. A range that is given is kept.
Colouring colouring_of(const DType& dtype, std::size_t channels, const Seen& seen, long double base,
                       const std::optional<NumberRange>& range);

/// Pixels in colour.
struct Raster {
  std::size_t width = 0;
  std::size_t height = 0;
  bool has_alpha = false;
  std::vector<std::uint8_t> rgba;   ///< four a pixel
  std::vector<std::uint8_t> level;  ///< how high the value lies in the range, or how bright the colour is
  std::vector<Picture::Mark> marks;

  Raster() = default;
  /// All dark grey, as what lies between the pictures of a sheet.
  Raster(std::size_t wide, std::size_t high);
};

/// Paints `picture` with its first pixel at (x, y), each of its pixels zoom_x * zoom_y large.
void paint_picture(Raster& raster, const Picture& picture, const Colouring& colouring, long double base, std::size_t x,
                   std::size_t y, std::size_t zoom_x, std::size_t zoom_y);

/// Puts `from` into `raster`, in which it has room, with its first pixel at (x, y).
void place(Raster& raster, const Raster& from, std::size_t x, std::size_t y);

}  // namespace penstock::cli
