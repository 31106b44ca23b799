#pragma once

// `penstock show`: what was asked for, and what to draw for it.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/show/sheet.h"
#include "cli/show/terminal_image.h"
#include "cli/slice_text.h"
#include "penstock/load.h"

namespace penstock::cli {

/// The widest picture.
inline constexpr std::size_t kMostWidth = 4096;

/// What `penstock show` was asked for.
struct ShowOptions {
  std::vector<std::string> words;  ///< files, then names
  std::vector<std::string> only;   ///< names
  std::vector<std::string> exclude;
  Headerless headerless;
  std::vector<SlicePart> slice;
  std::string layout;
  std::optional<NumberRange> range;
  std::optional<std::string> way;
  std::size_t width = 0;  ///< 0 chooses
  std::string png;
  bool force = false;  ///< replaces a file that exists
  bool json = false;

  /// The layout that was asked for.
  std::optional<Layout> wanted_layout() const;
};

/// "'a', 'b' and 3 more": the names of some of the archive's tensors.
std::string names_of(const Archive& archive, const std::vector<std::size_t>& some);

/// The entries of these names and patterns, in their order; without any, the only one that looks like a picture, or the
/// first that does where `first` is set. kKeyNotFound; kInvalidArgument where none can be chosen.
std::vector<std::size_t> chosen_entries(const Archive& archive, const std::vector<std::string>& names, bool first);

/// kUnsupported where there are no numbers to draw.
void require_numbers(const Archive& archive, const TensorEntry& entry);

/// The tensor of that number, or the slice of it that was asked for.
LazyTensor tensor_of(const Archive& archive, std::size_t entry, const ShowOptions& options);

/// Why there is nothing to draw; empty where there is.
std::string nothing_in(const LazyTensor& tensor);

/// The room there is, on a terminal of so many columns.
Canvas canvas_for(const ShowOptions& options, ImageWay way, std::size_t columns);

/// How wide the text below is.
std::size_t text_columns(const ShowOptions& options, ImageWay way);

/// What was drawn, as --json tells it.
Json json_of(const LazyTensor& tensor, const Reading& reading, const Sheet& sheet, const Drawn& drawn,
             std::string_view way);

/// Writes it where --png says, whole or not at all.
void write_png(const Raster& raster, const ShowOptions& options);

}  // namespace penstock::cli
