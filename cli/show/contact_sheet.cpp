// The headers of all files are read before the first picture is, because the largest of them decides how large a cell
// is. Each picture then has colours of its own: files may be of several types, and one of them would take the contrast
// from the others.

#include "cli/show/contact_sheet.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/output_file.h"
#include "cli/show/caption.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

/// What one picture is drawn from.
struct Cell {
  std::string path;
  Archive archive;
  std::size_t entry;
  LazyTensor tensor;
  Reading reading;   ///< of its first picture
  bool is_part;      ///< the tensor has more of them
  std::size_t told;  ///< its place in the JSON
};

/// The folder that all paths begin with, and its '/'.
std::size_t common_folder(const std::vector<Cell>& cells) {
  std::string common = cells.front().path;
  for (const Cell& cell : cells) {
    const auto [end, ignored] = std::mismatch(common.begin(), common.end(), cell.path.begin(), cell.path.end());
    common.erase(end, common.end());
  }
  return common.rfind('/') + 1;  // npos + 1 is 0
}

/// A reading in which every picture has room. A strip, which may be long, is made as short as the pictures beside it.
Reading largest_of(const std::vector<Cell>& cells) {
  const auto is_strip = [](const Cell& cell) { return cell.reading.is_strip; };
  Reading out{.pictures = static_cast<std::int64_t>(cells.size()),
              .is_strip = std::all_of(cells.begin(), cells.end(), is_strip)};
  for (const Cell& cell : cells) {
    if (is_strip(cell) && !out.is_strip) continue;
    out.height = std::max(out.height, cell.reading.height);
    out.width = std::max(out.width, cell.reading.width);
  }
  return out;
}

class ContactSheet {
 public:
  ContactSheet(const ShowOptions& options, const ChosenFiles& files)
      : options_(options),
        files_(files.paths.size()),
        failed_(!files.refused.empty()),
        way_(image_way(options.way)),
        columns_(text_columns(options, way_)),
        canvas_(canvas_for(options, way_, columns_)) {
    for (const Refused& refused : files.refused) listed_.push_back(error_json(refused.error, refused.path));
  }

  bool has_failed() const noexcept { return failed_; }

  void add(const std::string& path, const std::vector<std::string>& names) {
    has_more_ = has_more_ || is_full();
    if (has_more_) return;
    const std::size_t before = cells_.size();
    attempt(path, {}, [&] {
      const Archive archive = options_.headerless.open(path);
      for (const std::size_t entry : chosen_entries(archive, names, true)) {
        if (is_full()) {
          has_more_ = true;
        } else {
          attempt(path, {}, [&] { add(path, archive, entry); });
        }
      }
    });
    if (cells_.size() > before) ++shown_files_;
  }

  void draw() {
    require_free_png();
    if (!cells_.empty()) {
      largest_ = largest_of(cells_);
      sheet_ = lay_out(largest_, canvas_);
      draw_cells();
    }
    if (options_.json) print_json(Json(listed_));
  }

 private:
  bool is_full() const noexcept { return cells_.size() >= static_cast<std::size_t>(kMostPictures); }

  /// Does `what`, or tells its error, and keeps it at `told` in the JSON, or at the end.
  template <class Do>
  void attempt(const std::string& path, std::optional<std::size_t> told, const Do& what) {
    try {
      what();
    } catch (const Error& refused) {
      print_error(refused.within({.path = path}).what());
      if (!told) listed_.emplace_back();
      listed_[told.value_or(listed_.size() - 1)] = error_json(refused, path);
      failed_ = true;
    }
  }

  void add(const std::string& path, const Archive& archive, std::size_t entry) {
    require_numbers(archive, archive.entries()[entry]);
    LazyTensor tensor = tensor_of(archive, entry, options_);
    if (const std::string nothing = nothing_in(tensor); !nothing.empty()) {
      throw Error(ErrorCode::kInvalidArgument, nothing, {.path = path, .tensor = tensor.name()});
    }
    Reading reading = reading_of(tensor.shape(), options_.wanted_layout());
    const bool is_part = std::exchange(reading.pictures, 1) > 1;
    cells_.push_back({core::shown_path(path), archive, entry, std::move(tensor), reading, is_part, listed_.size()});
    listed_.emplace_back();
  }

  void require_free_png() const {
    if (options_.png.empty() || options_.png == kStandardOutput || options_.json) return;
    for (const Cell& cell : cells_) require_free(cell.archive.sources(), options_.png, options_.force, "drawn");
  }

  /// How a picture lies in its cell.
  Sheet sheet_in_cell(const Reading& reading) const {
    Sheet out{.width = sheet_.width, .height = sheet_.height, .zoom_x = sheet_.zoom_x, .zoom_y = sheet_.zoom_y};
    const bool is_alike = reading.height == largest_.height && reading.width == largest_.width;
    if (is_alike && reading.is_strip == largest_.is_strip) return out;
    Canvas room = canvas_;
    room.width = cell_width();
    room.height = cell_height();
    room.enlarge_to = std::min(room.width, room.height);
    out = lay_out(reading, room);
    out.width = std::min(out.width, room.width);
    out.height = std::min(out.height, room.height);
    out.zoom_x = std::min(out.zoom_x, room.width / out.width);
    out.zoom_y = std::min(out.zoom_y, room.height / out.height);
    return out;
  }

  std::size_t cell_width() const noexcept { return sheet_.width * sheet_.zoom_x; }
  std::size_t cell_height() const noexcept { return sheet_.height * sheet_.zoom_y; }

  void draw_cells() {
    const std::size_t down = (cells_.size() + sheet_.across - 1) / sheet_.across;
    Raster raster;
    if (!options_.json) raster = Raster(sheet_.across * (cell_width() + 1) - 1, down * (cell_height() + 1) - 1);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      attempt(cells_[i].path, cells_[i].told, [&] {
        place(raster, drawn(cells_[i]), i % sheet_.across * (cell_width() + 1),
              i / sheet_.across * (cell_height() + 1));
      });
    }
    if (options_.json) return;
    if (options_.png.empty()) {
      core::print("{}", terminal_image(raster, way_));
    } else {
      write_png(raster, options_);
    }
    core::print(options_.png == kStandardOutput ? stderr : stdout, "{}", caption());
  }

  Raster drawn(const Cell& cell) {
    const Sheet own = sheet_in_cell(cell.reading);
    NumberSource source(cell.archive, cell.entry, cell.tensor);
    Drawn out = cli::draw(source, cell.tensor.dtype(), cell.reading, own, options_.range, !options_.json);
    if (options_.json) {
      listed_[cell.told] = Json{{"path", cell.path}};
      listed_[cell.told].update(
          json_of(cell.tensor, cell.reading, own, out, options_.png.empty() ? name_of(way_) : "png"));
      return {};
    }
    remember(cell, own, out);
    return std::move(out.raster);
  }

  /// What the caption says of all.
  void remember(const Cell& cell, const Sheet& own, const Drawn& drawn) {
    is_smaller_ = is_smaller_ || own.width != static_cast<std::size_t>(cell.reading.width) ||
                  own.height != static_cast<std::size_t>(cell.reading.height);
    if (!colouring_) colouring_ = drawn.colouring;
    are_alike_ = are_alike_ && are_alike(*colouring_, drawn.colouring);
    all_.nans += drawn.seen.nans;
    all_.positive_infinities += drawn.seen.positive_infinities;
    all_.negative_infinities += drawn.seen.negative_infinities;
    if (!drawn.seen.any_finite()) return;
    all_.add(static_cast<double>(drawn.base + static_cast<long double>(drawn.seen.least)));
    all_.add(static_cast<double>(drawn.base + static_cast<long double>(drawn.seen.greatest)));
  }

  std::string what() const {
    const LazyTensor& first = cells_.front().tensor;
    const auto is_like_first = [&](const Cell& cell) {
      return cell.tensor.dtype() == first.dtype() && cell.tensor.shape() == first.shape();
    };
    std::string out = counted(cells_.size(), "picture") + " of ";
    if (shown_files_ < files_) out += human_count(shown_files_) + " of ";
    out += counted(files_, "file");
    if (std::all_of(cells_.begin(), cells_.end(), is_like_first)) {
      out += core::format(", each {} {}", printable(first.dtype().name()), first.shape().to_string());
    }
    if (std::any_of(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.is_part; })) {
      out += ", the first picture of a tensor";
    }
    if (is_smaller_) out += ", as means of blocks";
    return has_more_ ? out + "; choose others with a pattern" : out;
  }

  std::string colours() const {
    if (!colouring_) return {};
    if (are_alike_) {
      return core::format("{} from {:.6g} to {:.6g}{}", colouring_->name(), colouring_->range.low,
                          colouring_->range.high,
                          advice_of(cells_.front().tensor.dtype(), colouring_->range, all_.least, all_.greatest));
    }
    return core::format("each in colours of its own; --range={:.6g},{:.6g} makes them alike", all_.least,
                        all_.greatest);
  }

  /// "row 1: 0000.npy, 0001.npy", with the tensor's name where a file has several.
  std::string rows() const {
    const std::size_t folder = common_folder(cells_);
    std::string out;
    for (std::size_t first = 0; first < cells_.size(); first += sheet_.across) {
      std::string row;
      for (std::size_t i = first; i < std::min(first + sheet_.across, cells_.size()); ++i) {
        row += core::format("{} {}", row.empty() ? core::format("row {}:", first / sheet_.across + 1) : ",",
                            printable(std::string_view(cells_[i].path).substr(folder)));
        if (cells_.size() > shown_files_) row += ":" + printable(cells_[i].tensor.name());
      }
      out += wrapped(row, columns_);
    }
    return out;
  }

  std::string caption() const {
    std::string out = wrapped(what(), columns_);
    for (const std::string& text : {colours(), ill_of(all_)}) {
      if (!text.empty()) out += wrapped(text, columns_);
    }
    return out + rows();
  }

  const ShowOptions& options_;
  std::size_t files_;
  std::size_t shown_files_ = 0;
  bool failed_;
  ImageWay way_;
  std::size_t columns_;
  Canvas canvas_;
  std::vector<Cell> cells_;
  std::vector<Json> listed_;
  Reading largest_;
  Sheet sheet_;
  Seen all_;
  std::optional<Colouring> colouring_;  ///< of the first picture
  bool are_alike_ = true;
  bool has_more_ = false;  ///< than there is room for
  bool is_smaller_ = false;
};

}  // namespace

int show_files(const ShowOptions& options, const ChosenFiles& files, const std::vector<std::string>& names) {
  ContactSheet sheet(options, files);
  for (const std::string& path : files.paths) sheet.add(path, names);
  sheet.draw();
  return sheet.has_failed() ? 1 : 0;
}

}  // namespace penstock::cli
