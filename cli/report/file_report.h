#pragma once

// `penstock report FILE`: the data of the page.

#include <cstddef>
#include <string_view>
#include <vector>

#include "archive/inspect/leaves.h"
#include "archive/inspect/statistics.h"
#include "cli/json/json_writer.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Leaves that a page shows; `cat` and `info` print them all.
inline constexpr std::size_t kMostLeaves = 1000;

/// What a page shows of a file.
class FileReport {
 public:
  /// Reads each tensor once, in little memory; nothing but headers unless `with_values`. Keeps the first `most_leaves`.
  /// Errors are those of loading.
  FileReport(const Archive& archive, bool with_values, std::size_t most_leaves = kMostLeaves);

  std::size_t leaves_shown() const noexcept { return leaves_.size(); }
  /// The members of the object that is open, but for its path.
  void write(JsonWriter& out) const;

 private:
  void write_values(JsonWriter& out) const;
  void write_tensors(JsonWriter& out) const;

  Archive archive_;
  std::vector<archive::Statistics> statistics_;  ///< one for each tensor, or none
  std::vector<archive::Leaf> leaves_;            ///< the first ones
  std::size_t leaves_left_out_ = 0;
};

/// What is odd about a tensor, worst first: "nan", "inf"; of those with more than one element "zero" (all of them are)
/// or "constant"; and "denormal": it has any, or, in floats of 16 bits and less with a narrow exponent, where small
/// numbers often are, more than half of its numbers beside 0 are.
std::vector<std::string_view> marks_of(const archive::Statistics& of);

}  // namespace penstock::cli
