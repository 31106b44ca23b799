// One tensor after the other is chosen, laid out for what it is drawn on, read and drawn, with a caption that says what
// was done to it. Of several files contact_sheet.h draws one picture of each.

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
#include "cli/show/contact_sheet.h"
#include "cli/show/request.h"
#include "cli/show/sheet.h"
#include "cli/show/terminal_image.h"
#include "cli/slice_text.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

class Show {
 public:
  explicit Show(const ShowOptions& options)
      : options_(options), way_(image_way(options.way)), columns_(text_columns(options, way_)) {}

  void show(const Archive& archive, std::size_t entry) {
    require_numbers(archive, archive.entries()[entry]);
    const LazyTensor tensor = tensor_of(archive, entry, options_);
    if (const std::string nothing = nothing_in(tensor); !nothing.empty()) return say_nothing(archive, tensor, nothing);
    const Reading reading = reading_of(tensor.shape(), options_.wanted_layout());
    const Sheet sheet = lay_out(reading, canvas_for(options_, way_, columns_));
    NumberSource source(archive, entry, tensor);
    const Drawn drawn = draw(source, tensor.dtype(), reading, sheet, options_.range, !options_.json);
    if (options_.json) {
      listed_.push_back(json_of(tensor, reading, sheet, drawn, options_.png.empty() ? name_of(way_) : "png"));
      return;
    }
    if (options_.png.empty()) {
      core::print("{}", terminal_image(drawn.raster, way_));
    } else {
      write_png(drawn.raster, options_);
    }
    core::print(options_.png == kStandardOutput ? stderr : stdout, "{}",
                caption_of(tensor, reading, sheet, drawn, columns_));
  }

  void finish(bool several) const {
    if (options_.json) print_json(several ? Json(listed_) : listed_.front());
  }

 private:
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

  const ShowOptions& options_;
  ImageWay way_;
  std::size_t columns_;
  std::vector<Json> listed_;
};

/// Words are files and then names. Of two, the second is a name also where it looks like a file but none is there: an
/// .npz may be asked for "a.npy".
FilesAndNames files_and_names_of(const ShowOptions& options) {
  FilesAndNames words = files_and_names(options.words, options.only);
  if (options.words.size() != 2 || words.files.size() != 2) return words;
  if (is_there(words.files.back())) return words;
  words.names.insert(words.names.begin(), words.files.back());
  words.files.pop_back();
  return words;
}

int show_file(const ShowOptions& options, const std::string& path, const std::vector<std::string>& names) {
  const bool writes_file = !options.png.empty() && options.png != kStandardOutput && !options.json;
  const Archive archive = options.headerless.open(path);
  if (writes_file) require_free(archive.sources(), options.png, options.force, "drawn");
  const std::vector<std::size_t> entries = chosen_entries(archive, names, false);
  if (entries.size() > 1 && !options.png.empty()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("--png takes one tensor, and there are {}: {}", entries.size(), names_of(archive, entries)),
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

int run(const ShowOptions& options) {
  if (options.png == kStandardOutput && !options.json && is_terminal(stdout)) {
    throw Error(ErrorCode::kInvalidArgument, "a PNG is not written to a terminal; name a file, or send it into a pipe");
  }
  const FilesAndNames words = files_and_names_of(options);
  const ChosenFiles files = choose_files(words.files, options.exclude);
  if (files.is_single) return show_file(options, files.paths.front(), words.names);
  return show_files(options, files, words.names);
}

std::optional<double> finite_number(std::string_view text) {
  const auto value = core::parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<NumberRange> range_from(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto low = finite_number(text.substr(0, comma));
  const auto high = finite_number(text.substr(comma + 1));
  if (!low || !high || *low >= *high) return std::nullopt;
  return NumberRange{*low, *high};
}

void add_range(Arguments& arguments, const std::shared_ptr<ShowOptions>& options) {
  const auto parse = [options](const std::string& text) { options->range = range_from(text); };
  arguments.add("--range", parse, "The values of the first and the last colour")
      .takes_checked("LO,HI", [](const std::string& text) {
        return range_from(text) ? std::string() : "two finite numbers, LO below HI, such as -1,1";
      });
}

std::function<int()> attach_show(Arguments& arguments) {
  auto options = std::make_shared<ShowOptions>();
  take_files_and_names(arguments, options->words, options->only, options->exclude);
  take_slice(arguments, options->slice);
  options->headerless.take(arguments);
  arguments.add("--layout", &options->layout, "What the last dimensions are; guessed when not given")
      .takes_word({"hw", "hwc", "chw"});
  add_range(arguments, options);
  arguments.add("--as", &options->way, "How the terminal is drawn on; by the environment when not given")
      .takes_word({"kitty", "sixel", "blocks", "ascii"});
  arguments.add("--width", &options->width, "Columns; pixels of a PNG, kitty and sixel").takes_number(1, kMostWidth);
  arguments.add("--png", &options->png, "Write a PNG there instead; - for standard output")
      .excludes("--as")
      .takes("FILE");
  arguments.add("--force", &options->force, "Replace a PNG that exists");
  arguments.add("--json", &options->json, "Print what would be drawn as JSON; of several, a list of objects");
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
    "memory, and drawn as means of blocks. Without a terminal, characters take the place of colours. Words behind the "
    "files are names of tensors or patterns in quotes, and may be left out where one looks like a picture. Of several "
    "files, or those of a folder or a pattern, a sheet has one picture of each, 64 at most, which have their own "
    "colours unless --range is given. A file without one is told on standard error, and the exit status is then 1. - "
    "is standard input.",
    {"penstock show images.npy --range 0,16", "penstock show model.pt encoder.weight --png weight.png",
     "penstock show digits --range 0,16"},
    attach_show};

}  // namespace penstock::cli
