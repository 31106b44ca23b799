#include "cli/show/request.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/output_file.h"
#include "cli/show/png.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "data/scan/name_match.h"
#include "io/file/output.h"
#include "ops/elements.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

/// Pixels that a PNG of few elements is enlarged to, so that it can be seen.
constexpr std::size_t kLeastPng = 256;

bool looks_like_picture(const TensorEntry& entry) {
  const std::size_t rank = entry.shape.rank();
  return entry.dtype.is_numeric() && !entry.pickled && rank >= 2 && entry.shape.numel() > 0 &&
         entry.shape[rank - 1] > 1 && entry.shape[rank - 2] > 1;
}

/// The only tensor, or the one that looks like a picture; where several do, the first or none.
std::size_t picture_of(const Archive& archive, bool first) {
  const auto entries = archive.entries();
  if (entries.size() == 1) return 0;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (looks_like_picture(entries[i])) found.push_back(i);
  }
  if (found.size() == 1 || (first && !found.empty())) return found.front();
  if (entries.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the file holds no tensors, so there is nothing to draw",
                {.path = archive.path()});
  }
  const std::string what =
      found.empty() ? "none that looks like a picture; name one of those that `penstock ls` shows"
                    : core::format("several that could be pictures; name one of {}", names_of(archive, found));
  throw Error(ErrorCode::kInvalidArgument, core::format("holds {}, {}", counted(entries.size(), "tensor"), what),
              {.path = archive.path()});
}

/// Adds those that a name or pattern stands for.
void add_named(const Archive& archive, const std::string& name, std::vector<std::size_t>& out) {
  const auto entries = archive.entries();
  std::vector<std::size_t> matching;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == name || printable(entries[i].name) == name) return out.push_back(i);
    if (data::matches(name, entries[i].name)) matching.push_back(i);
  }
  if (matching.empty()) {
    // It finds what has another name too, "a.npy" of an .npz, or says which names are near.
    const std::string known = archive[name].name();
    const auto at =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == known; });
    matching.push_back(static_cast<std::size_t>(at - entries.begin()));
  }
  out.insert(out.end(), matching.begin(), matching.end());
}

Json number_json(const DType& dtype, long double number) {
  if (dtype == DType::uint64 && number >= 0) return static_cast<std::uint64_t>(number);
  if (dtype.is_integer() && std::floor(number) == number && number >= -0x1p63L && number < 0x1p63L) {
    return static_cast<std::int64_t>(number);
  }
  return static_cast<double>(number);
}

}  // namespace

std::optional<Layout> ShowOptions::wanted_layout() const {
  if (layout.empty()) return std::nullopt;
  return layout == "hw" ? Layout::kHW : layout == "hwc" ? Layout::kHWC : Layout::kCHW;
}

std::string names_of(const Archive& archive, const std::vector<std::size_t>& some) {
  constexpr std::size_t kListed = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(some.size(), kListed); ++i) {
    out += core::format("{}{}", i == 0 ? "" : ", ", core::quoted(archive.entries()[some[i]].name));
  }
  return some.size() > kListed ? out + core::format(" and {} more", some.size() - kListed) : out;
}

std::vector<std::size_t> chosen_entries(const Archive& archive, const std::vector<std::string>& names, bool first) {
  if (names.empty()) return {picture_of(archive, first)};
  std::vector<std::size_t> out;
  for (const std::string& name : names) add_named(archive, name, out);
  return out;
}

void require_numbers(const Archive& archive, const TensorEntry& entry) {
  if (entry.dtype.is_numeric() && !entry.pickled) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("a picture is drawn from numbers, and {} has none; `penstock cat` prints elements",
                           printable(entry.dtype.name())),
              {.path = archive.path(), .tensor = entry.name});
}

LazyTensor tensor_of(const Archive& archive, std::size_t entry, const ShowOptions& options) {
  const LazyTensor whole = archive.entry(entry);
  return options.slice.empty() ? whole : apply_slice(whole, options.slice);
}

std::string nothing_in(const LazyTensor& tensor) {
  if (tensor.shape().numel() == 0) return "no elements: nothing to draw";
  if (tensor.shape().rank() != 0) return {};
  return "a scalar, which has no picture: " + ops::ElementPrinter(tensor.load()).text(0);
}

Canvas canvas_for(const ShowOptions& options, ImageWay way, std::size_t columns) {
  const bool chosen_width = options.width != 0;
  if (!options.png.empty()) {
    return {.width = chosen_width ? options.width : kMostWidth,
            .height = kMostWidth,
            .most_pixels = std::size_t{1} << (chosen_width ? 22 : 21),
            .enlarge_to = chosen_width ? options.width : kLeastPng,
            .strip_height = 16};
  }
  const std::size_t unit = has_pixels(way) && !chosen_width ? 8 : 1;
  const std::size_t width = unit * (chosen_width ? options.width : columns);
  const bool is_tall = is_character(way);
  return {.width = width,
          .height = std::max<std::size_t>(1, is_tall ? width / 2 : width),
          .enlarge_to = chosen_width ? width : std::min(width, 32 * unit),
          .strip_height = is_tall           ? 1U
                          : has_pixels(way) ? 32U
                                            : 4U,
          .is_tall = is_tall};
}

std::size_t text_columns(const ShowOptions& options, ImageWay way) {
  // Text is as wide as the picture, but a picture in pixels says nothing about columns.
  const bool is_text = options.png.empty() && !has_pixels(way);
  return options.width != 0 && is_text ? std::max<std::size_t>(options.width, 20) : terminal_columns(stdout);
}

Json json_of(const LazyTensor& tensor, const Reading& reading, const Sheet& sheet, const Drawn& drawn,
             std::string_view way) {
  const DType dtype = tensor.dtype();
  const auto pair = [&](long double low, long double high) {
    return drawn.seen.any_finite() ? Json::array({number_json(dtype, low), number_json(dtype, high)}) : Json();
  };
  return {{"name", tensor.name()},
          {"dtype", dtype.name()},
          {"shape", std::vector(tensor.shape().begin(), tensor.shape().end())},
          {"layout", reading.layout_name()},
          {"pictures", reading.pictures},
          {"shown", sheet.shown},
          {"across", sheet.across},
          {"height", sheet.height},
          {"width", sheet.width},
          {"channels", reading.channels},
          {"map", drawn.colouring.name()},
          {"range", pair(drawn.colouring.range.low, drawn.colouring.range.high)},
          {"values", pair(drawn.base + drawn.seen.least, drawn.base + drawn.seen.greatest)},
          {"nan", drawn.seen.nans},
          {"inf", drawn.seen.positive_infinities},
          {"negative_inf", drawn.seen.negative_infinities},
          {"as", way}};
}

void write_png(const Raster& raster, const ShowOptions& options) {
  const std::string png = png_of(raster);
  if (options.png == kStandardOutput) return core::print("{}", png);
  const std::unique_ptr<io::Output> out = io::open_output(options.png, {.existing = existing(options.force)});
  out->write_text(png);
  out->commit();
}

}  // namespace penstock::cli
