// All pictures of a sheet are read before the first is painted, because they share a range. A picture is made smaller
// by the same factor in both directions, but a few rows or columns, which are rather those of a table, stay apart.

#include "cli/show/sheet.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock::cli {
namespace {

constexpr std::size_t kFew = 8;
/// Pixels that a picture of a sheet has at least across, with the one between.
constexpr std::size_t kLeastAcross = 5;

std::size_t across_of(const Reading& reading, std::size_t shown, const Canvas& canvas) {
  const double shape = static_cast<double>(reading.height) / static_cast<double>(reading.width);
  const double square = std::ceil(std::sqrt(static_cast<double>(shown) * shape));
  const std::size_t most = std::min(shown, std::max<std::size_t>(1, (canvas.width + 1) / kLeastAcross));
  return square >= static_cast<double>(most) ? most : std::max<std::size_t>(1, static_cast<std::size_t>(square));
}

std::size_t made_smaller(std::int64_t size, double factor, std::size_t most) {
  const auto all = static_cast<std::size_t>(size);
  const auto smaller = static_cast<std::size_t>(static_cast<double>(size) / factor);
  return std::min({std::max({smaller, std::min(all, kFew), std::size_t{1}}), all, most});
}

void enlarge(Sheet& sheet, const Reading& reading, const Canvas& canvas) {
  const std::size_t between = sheet.across - 1;
  const std::size_t unit = sheet.across * sheet.width * sheet.zoom_x;
  if (canvas.enlarge_to > between + unit) {
    std::size_t zoom = (canvas.enlarge_to - between) / unit;
    if (!reading.is_strip) zoom = std::max<std::size_t>(1, std::min(zoom, canvas.enlarge_to / sheet.height));
    sheet.zoom_x *= zoom;
    sheet.zoom_y *= zoom;
  }
}

}  // namespace

Sheet lay_out(const Reading& reading, const Canvas& canvas) {
  Sheet out{.shown = static_cast<std::size_t>(std::min(reading.pictures, kMostPictures))};
  out.across = across_of(reading, out.shown, canvas);
  const std::size_t most_wide = std::max<std::size_t>(1, (canvas.width - (out.across - 1)) / out.across);
  const std::size_t most_high = out.shown == 1 ? canvas.height : most_wide;
  const auto wide = static_cast<double>(reading.width);
  const auto high = static_cast<double>(reading.height);
  const bool doubles = canvas.is_tall && 2 * wide <= static_cast<double>(most_wide) &&
                       high <= static_cast<double>(std::max(most_high, kFew));
  const double squash = canvas.is_tall && !doubles ? 2 : 1;
  const double pixels = wide * high * static_cast<double>(out.shown) / static_cast<double>(canvas.most_pixels);
  const double factor = std::max(
      {1.0, wide / static_cast<double>(most_wide), high / squash / static_cast<double>(most_high), std::sqrt(pixels)});
  out.width = made_smaller(reading.width, factor, most_wide);
  out.height = made_smaller(reading.height, factor * squash, std::max(most_high, kFew));
  out.zoom_x = doubles ? 2 : 1;
  const bool is_whole =
      out.width == static_cast<std::size_t>(reading.width) && out.height == static_cast<std::size_t>(reading.height);
  if (is_whole && squash == 1) enlarge(out, reading, canvas);
  if (reading.is_strip) out.zoom_y = canvas.strip_height;
  return out;
}

Drawn draw(NumberSource& source, const DType& dtype, const Reading& reading, const Sheet& sheet,
           const std::optional<NumberRange>& range, bool wanted) {
  Drawn out;
  std::vector<Picture> pictures;
  for (std::size_t i = 0; i < sheet.shown; ++i) {
    pictures.push_back(read_picture(source, reading, sheet.width, sheet.height, out.seen));
  }
  source.finish();
  out.base = source.base();
  out.colouring = colouring_of(dtype, static_cast<std::size_t>(reading.channels), out.seen, out.base, range);
  if (!wanted) return out;
  const std::size_t step_x = sheet.width * sheet.zoom_x + 1;
  const std::size_t step_y = sheet.height * sheet.zoom_y + 1;
  const std::size_t down = (sheet.shown + sheet.across - 1) / sheet.across;
  out.raster = Raster(sheet.across * step_x - 1, down * step_y - 1);
  for (std::size_t i = 0; i < sheet.shown; ++i) {
    paint_picture(out.raster, pictures[i], out.colouring, out.base, i % sheet.across * step_x,
                  i / sheet.across * step_y, sheet.zoom_x, sheet.zoom_y);
  }
  return out;
}

}  // namespace penstock::cli
