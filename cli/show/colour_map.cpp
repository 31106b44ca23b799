// Numbers below zero are drawn with a diverging map: white is zero, blue is below and red above, as far on either side.
// Else integers are grey and floats are viridis, from the least to the greatest. What is an image already, uint8 or
// floats from 0 to 1, is not stretched; floats of which none passes one half are stretched all the same where they are
// not colours, since weights of attention and the like would be black.

#include "cli/show/colour_map.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace penstock::cli {
namespace {

constexpr std::uint8_t kBetween = 64;
constexpr std::array<Rgb, 2> kGreyAnchors{Rgb{0, 0, 0}, Rgb{255, 255, 255}};
constexpr std::array<Rgb, 9> kViridisAnchors{Rgb{68, 1, 84},    Rgb{71, 45, 123},  Rgb{59, 82, 139},
                                             Rgb{44, 114, 142}, Rgb{33, 145, 140}, Rgb{40, 174, 128},
                                             Rgb{94, 201, 98},  Rgb{173, 220, 48}, Rgb{253, 231, 37}};
constexpr std::array<Rgb, 5> kDivergingAnchors{Rgb{33, 102, 172}, Rgb{103, 169, 207}, Rgb{247, 247, 247},
                                               Rgb{239, 138, 98}, Rgb{178, 24, 43}};

std::span<const Rgb> anchors_of(ColourMap map) {
  if (map == ColourMap::kViridis) return kViridisAnchors;
  if (map == ColourMap::kDiverging) return kDivergingAnchors;
  return kGreyAnchors;
}

std::uint8_t byte_of(double share) { return static_cast<std::uint8_t>(std::lround(share * 255)); }

Rgb colour_at(ColourMap map, double share) {
  const std::span<const Rgb> anchors = anchors_of(map);
  const double place = share * static_cast<double>(anchors.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), anchors.size() - 2);
  const double part = place - static_cast<double>(below);
  Rgb out;
  for (std::size_t i = 0; i < 3; ++i) {
    out[i] = static_cast<std::uint8_t>(std::lround(anchors[below][i] * (1 - part) + anchors[below + 1][i] * part));
  }
  return out;
}

/// Where numbers lie in the range, from 0 to 1.
class Scale {
 public:
  Scale(const Colouring& colouring, long double base)
      : low_(static_cast<double>(colouring.range.low - base)),
        high_(static_cast<double>(colouring.range.high - base)),
        zero_(static_cast<double>(-base)),
        diverging_(colouring.map == ColourMap::kDiverging) {}

  double operator()(double number) const {
    if (!(low_ < high_)) return 0.5;
    if (!diverging_) return share(number, low_, high_);
    return number < zero_ ? share(number, low_, zero_) / 2 : 0.5 + share(number, zero_, high_) / 2;
  }

 private:
  static double share(double number, double low, double high) {
    // Halves, because the difference of two doubles may be none.
    return std::clamp((number / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0);
  }

  double low_;
  double high_;
  double zero_;
  bool diverging_;
};

/// Floats from 0 to 1 are an image; without colours only where they reach the upper half.
bool is_unit_image(const DType& dtype, std::size_t channels, const Seen& seen) {
  return dtype.is_floating() && seen.least >= 0 && seen.greatest <= 1 && (channels > 1 || seen.greatest > 0.5);
}

struct Pixel {
  Rgb rgb;
  std::uint8_t alpha = 255;
  std::uint8_t level = 0;
};

Pixel pixel_of(std::span<const double> means, const Colouring& colouring, const Scale& scale) {
  if (colouring.map != ColourMap::kColour) {
    const double share = scale(means[0]);
    return {.rgb = colour_at(colouring.map, share), .level = byte_of(share)};
  }
  Pixel out{.rgb = {byte_of(scale(means[0])), byte_of(scale(means[1])), byte_of(scale(means[2]))}};
  if (colouring.has_alpha) out.alpha = byte_of(scale(means[3]));
  // What is transparent is as dark as the terminal.
  const double bright = (0.299 * out.rgb[0] + 0.587 * out.rgb[1] + 0.114 * out.rgb[2]) * out.alpha / 255;
  out.level = static_cast<std::uint8_t>(std::lround(bright));
  return out;
}

}  // namespace

std::string_view Colouring::name() const noexcept {
  constexpr std::array<std::string_view, 4> kNames{"grey", "viridis", "diverging", "colour"};
  return kNames[static_cast<std::size_t>(map)];
}

bool are_alike(const Colouring& a, const Colouring& b) noexcept {
  return a.map == b.map && a.range.low == b.range.low && a.range.high == b.range.high;
}

Colouring colouring_of(const DType& dtype, std::size_t channels, const Seen& seen, long double base,
                       const std::optional<NumberRange>& range) {
  Colouring out;
  const NumberRange values =
      seen.any_finite() ? NumberRange{base + seen.least, base + seen.greatest} : NumberRange{0, 1};
  const bool is_image = dtype == DType::uint8 || dtype == DType::boolean || is_unit_image(dtype, channels, seen);
  out.range = values;
  if (dtype == DType::uint8) out.range = {0, 255};
  if (is_image && dtype != DType::uint8) out.range = {0, 1};
  const bool is_signed = channels == 1 && (range ? range->low : out.range.low) < 0;
  if (is_signed) {
    const long double most = std::max(std::fabs(values.low), std::fabs(values.high));
    out.range = {-most, most};
  }
  if (range) out.range = *range;
  if (channels > 1) {
    out.map = ColourMap::kColour;
    out.has_alpha = channels == 4 && is_image;
  } else if (is_signed && out.range.high > 0) {
    out.map = ColourMap::kDiverging;
  } else if (!is_image && !dtype.is_integer()) {
    out.map = ColourMap::kViridis;
  }
  return out;
}

Raster::Raster(std::size_t wide, std::size_t high)
    : width(wide), height(high), rgba(4 * wide * high, kBetween), level(wide * high), marks(wide * high) {
  for (std::size_t i = 3; i < rgba.size(); i += 4) rgba[i] = 255;
}

void paint_picture(Raster& raster, const Picture& picture, const Colouring& colouring, long double base, std::size_t x,
                   std::size_t y, std::size_t zoom_x, std::size_t zoom_y) {
  const Scale scale(colouring, base);
  raster.has_alpha = colouring.has_alpha;
  for (std::size_t row = 0; row < picture.height * zoom_y; ++row) {
    for (std::size_t column = 0; column < picture.width * zoom_x; ++column) {
      const std::size_t from = row / zoom_y * picture.width + column / zoom_x;
      const std::size_t to = (y + row) * raster.width + x + column;
      Pixel pixel =
          pixel_of(std::span(picture.means).subspan(from * picture.channels, picture.channels), colouring, scale);
      const Picture::Mark mark = picture.marks[from];
      if (mark != Picture::Mark::kNone) {
        pixel = {.rgb = mark == Picture::Mark::kNaN ? kNaNColour : kInfiniteColour, .level = 255};
      }
      std::copy(pixel.rgb.begin(), pixel.rgb.end(), raster.rgba.begin() + static_cast<std::ptrdiff_t>(4 * to));
      raster.rgba[4 * to + 3] = pixel.alpha;
      raster.level[to] = pixel.level;
      raster.marks[to] = mark;
    }
  }
}

void place(Raster& raster, const Raster& from, std::size_t x, std::size_t y) {
  raster.has_alpha = raster.has_alpha || from.has_alpha;
  for (std::size_t row = 0; row < from.height; ++row) {
    const auto in = static_cast<std::ptrdiff_t>(row * from.width);
    const auto to = static_cast<std::ptrdiff_t>((y + row) * raster.width + x);
    const auto wide = static_cast<std::ptrdiff_t>(from.width);
    std::copy_n(from.rgba.begin() + 4 * in, 4 * wide, raster.rgba.begin() + 4 * to);
    std::copy_n(from.level.begin() + in, wide, raster.level.begin() + to);
    std::copy_n(from.marks.begin() + in, wide, raster.marks.begin() + to);
  }
}

}  // namespace penstock::cli
