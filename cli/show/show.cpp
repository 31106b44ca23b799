// One tensor after the other is chosen, laid out for what it is drawn on, read and drawn, with a caption that says what
// was done to it.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/output_file.h"
#include "cli/show/caption.h"
#include "cli/show/png.h"
#include "cli/show/sheet.h"
#include "cli/show/terminal_image.h"
#include "cli/slice_text.h"
#include "cli/standard_input.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "data/scan/name_match.h"
#include "io/file/output.h"
#include "ops/elements.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kMostWidth = 4096;

struct Options {
  std::string path;
  std::optional<std::string> name;
  std::vector<SlicePart> slice;
  std::string layout;
  std::optional<Range> range;
  std::optional<std::string> way;
  std::size_t width = 0;  ///< 0 chooses
  std::string png;
  bool force = false;  ///< replaces a file that exists
  bool json = false;
};

bool looks_like_picture(const TensorEntry& entry) {
  const std::size_t rank = entry.shape.rank();
  return entry.dtype.is_numeric() && !entry.pickled && rank >= 2 && entry.shape.numel() > 0 &&
         entry.shape[rank - 1] > 1 && entry.shape[rank - 2] > 1;
}

std::string names_of(const Archive& archive, const std::vector<std::size_t>& some) {
  constexpr std::size_t kListed = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(some.size(), kListed); ++i) {
    out += core::format("{}{}", i == 0 ? "" : ", ", core::quoted(archive.entries()[some[i]].name));
  }
  return some.size() > kListed ? out + core::format(" and {} more", some.size() - kListed) : out;
}

std::size_t only_picture(const Archive& archive) {
  const auto entries = archive.entries();
  if (entries.size() == 1) return 0;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (looks_like_picture(entries[i])) found.push_back(i);
  }
  if (found.size() == 1) return found.front();
  const std::string what =
      found.empty() ? "none that looks like a picture; name one of those that `penstock ls` shows"
                    : core::format("several that could be pictures; name one of {}", names_of(archive, found));
  throw Error(ErrorCode::kInvalidArgument, core::format("holds {}, {}", counted(entries.size(), "tensor"), what),
              {.path = archive.path()});
}

std::vector<std::size_t> chosen(const Archive& archive, const Options& options) {
  if (!options.name) return {only_picture(archive)};
  const auto entries = archive.entries();
  std::vector<std::size_t> matching;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == *options.name) return {i};
    if (data::matches(*options.name, entries[i].name)) matching.push_back(i);
  }
  if (!matching.empty()) return matching;
  // It finds what has another name too, "a.npy" of an .npz, or says which names are near.
  const std::string name = archive[*options.name].name();
  const auto at = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  return {static_cast<std::size_t>(at - entries.begin())};
}

Canvas canvas_for(const Options& options, ImageWay way, std::size_t columns) {
  const bool chosen_width = options.width != 0;
  if (!options.png.empty()) {
    return {.width = chosen_width ? options.width : kMostWidth,
            .height = kMostWidth,
            .most_pixels = std::size_t{1} << (chosen_width ? 22 : 21),
            .enlarge_to = options.width,
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

Json number_json(const DType& dtype, long double number) {
  if (dtype == DType::uint64 && number >= 0) return static_cast<std::uint64_t>(number);
  if (dtype.is_integer() && std::floor(number) == number && number >= -0x1p63L && number < 0x1p63L) {
    return static_cast<std::int64_t>(number);
  }
  return static_cast<double>(number);
}

Json json_of(const LazyTensor& tensor, const Reading& reading, const Sheet& sheet, const Drawn& drawn, ImageWay way,
             bool is_png) {
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
          {"as", is_png ? std::string_view("png") : name_of(way)}};
}

/// Why there is nothing to draw; empty where there is.
std::string nothing_in(const LazyTensor& tensor) {
  if (tensor.shape().numel() == 0) return "no elements: nothing to draw";
  if (tensor.shape().rank() != 0) return {};
  return "a scalar, which has no picture: " + ops::ElementPrinter(tensor.load()).text(0);
}

void require_numbers(const Archive& archive, const TensorEntry& entry) {
  if (entry.dtype.is_numeric() && !entry.pickled) return;
  throw Error(ErrorCode::kUnsupported,
              core::format("a picture is drawn from numbers, and {} has none; `penstock cat` prints elements",
                           printable(entry.dtype.name())),
              {.path = archive.path(), .tensor = entry.name});
}

void write_png(const Raster& raster, const std::string& path, bool force) {
  const std::string png = png_of(raster);
  if (path == kStandardOutput) return core::print("{}", png);
  const std::unique_ptr<io::Output> out = io::open_output(path, {.existing = existing(force)});
  out->write_text(png);
  out->commit();
}

class Show {
 public:
  explicit Show(const Options& options)
      : options_(options), way_(image_way(options.way)), columns_(terminal_columns(stdout)) {
    // Text is as wide as the picture, but a picture in pixels says nothing about columns.
    const bool is_text = options.png.empty() && !has_pixels(way_);
    if (options.width != 0 && is_text) columns_ = std::max<std::size_t>(options.width, 20);
  }

  void show(const Archive& archive, std::size_t entry) {
    require_numbers(archive, archive.entries()[entry]);
    LazyTensor tensor = archive.entry(entry);
    if (!options_.slice.empty()) tensor = apply_slice(tensor, options_.slice);
    if (const std::string nothing = nothing_in(tensor); !nothing.empty()) return say_nothing(archive, tensor, nothing);
    const Reading reading = reading_of(tensor.shape(), layout());
    const Sheet sheet = lay_out(reading, canvas_for(options_, way_, columns_));
    NumberSource source(archive, entry, tensor);
    const Drawn drawn = draw(source, tensor.dtype(), reading, sheet, options_.range, !options_.json);
    if (options_.json) {
      listed_.push_back(json_of(tensor, reading, sheet, drawn, way_, !options_.png.empty()));
      return;
    }
    if (options_.png.empty()) {
      core::print("{}", terminal_image(drawn.raster, way_));
    } else {
      write_png(drawn.raster, options_.png, options_.force);
    }
    core::print(options_.png == kStandardOutput ? stderr : stdout, "{}",
                caption_of(tensor, reading, sheet, drawn, columns_));
  }

  void finish(bool several) const {
    if (options_.json) print_json(several ? Json(listed_) : listed_.front());
  }

 private:
  std::optional<Layout> layout() const {
    if (options_.layout.empty()) return std::nullopt;
    return options_.layout == "hw" ? Layout::kHW : options_.layout == "hwc" ? Layout::kHWC : Layout::kCHW;
  }

  void say_nothing(const Archive& archive, const LazyTensor& tensor, const std::string& nothing) {
    if (options_.json) {
      listed_.push_back(Json{{"name", tensor.name()},
                             {"dtype", tensor.dtype().name()},
                             {"shape", std::vector(tensor.shape().begin(), tensor.shape().end())},
                             {"pictures", 0}});
    } else if (!options_.png.empty()) {
      throw Error(ErrorCode::kInvalidArgument, nothing, {.path = archive.path(), .tensor = tensor.name()});
    } else {
      core::print("{}{}", wrapped(title_of(tensor), columns_), wrapped(nothing, columns_));
    }
  }

  const Options& options_;
  ImageWay way_;
  std::size_t columns_;
  std::vector<Json> listed_;
};

int run(const Options& options) {
  const bool writes_file = !options.png.empty() && options.png != kStandardOutput && !options.json;
  if (options.png == kStandardOutput && !options.json && is_terminal(stdout)) {
    throw Error(ErrorCode::kInvalidArgument, "a PNG is not written to a terminal; name a file, or send it into a pipe");
  }
  const Archive archive = open_input(options.path);
  if (writes_file) require_free(archive.sources(), options.png, options.force, "drawn");
  const std::vector<std::size_t> entries = chosen(archive, options);
  if (entries.size() > 1 && !options.png.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("--png takes one tensor, and the pattern gives {}: {}", entries.size(),
                             names_of(archive, entries)),
                {.path = archive.path()});
  }
  Show show(options);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0 && !options.json) core::print("\n");
    show.show(archive, entries[i]);
  }
  show.finish(entries.size() > 1);
  return 0;
}

std::optional<double> finite_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Range> range_from(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto low = finite_number(text.substr(0, comma));
  const auto high = finite_number(text.substr(comma + 1));
  if (!low || !high || *low >= *high) return std::nullopt;
  return Range{*low, *high};
}

void add_range(CLI::App& app, const std::shared_ptr<Options>& options) {
  CLI::Option* const option = app.add_option_function<std::string>(
      "--range", [options](const std::string& text) { options->range = range_from(text); },
      "The values of the first and the last colour");
  take_checked(*option, "LO,HI", [](const std::string& text) {
    return range_from(text) ? std::string() : "two finite numbers, LO below HI, such as -1,1";
  });
}

std::function<int()> attach(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->path, "A tensor file; - for standard input")->required()->type_name("FILE");
  app.add_option("name", options->name,
                 "The tensor, or a pattern in quotes; may be left out when one looks like a picture")
      ->type_name("NAME");
  take_slice(app, options->slice);
  take_word(*app.add_option("--layout", options->layout, "What the last dimensions are; guessed when not given"),
            {"hw", "hwc", "chw"});
  add_range(app, options);
  take_word(*app.add_option("--as", options->way, "How the terminal is drawn on; by the environment when not given"),
            {"kitty", "sixel", "blocks", "ascii"});
  take_number(*app.add_option("--width", options->width, "Columns; pixels of a PNG, kitty and sixel"), 1, kMostWidth);
  app.add_option("--png", options->png, "Write a PNG there instead; - for standard output")->type_name("FILE");
  app.add_flag("--force", options->force, "Replace a PNG that exists");
  app.add_flag("--json", options->json, "Print what would be drawn as JSON; of several tensors, a list of objects");
  return [options] { return run(*options); };
}

}  // namespace

const Command kShow{
    "show",
    "Draw a tensor as a picture",
    "The last dimensions are a picture: height and width, in colour with 3 or 4 channels before or behind them. Those "
    "before count pictures, of which the first 64 are drawn beside each other. Integers are grey and floats viridis "
    "from the least to the greatest; uint8, and floats from 0 to 1, are not stretched. With values below zero, white "
    "is zero, blue below and red above. NaN is magenta and an infinity is green. Large tensors are read in little "
    "memory, and drawn as means of blocks. Without a terminal, characters take the place of colours.",
    {"penstock show images.npy --range 0,16", "penstock show images.npy --slice 0 --png digit.png",
     "penstock show model.pt encoder.weight --range=-0.1,0.1"},
    attach};

}  // namespace penstock::cli
