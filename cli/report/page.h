#pragma once

// The page of `penstock report`, one HTML file: text that CMake embeds, with the data as JSON between.

#include <functional>
#include <string>
#include <string_view>

#include "cli/json/json_writer.h"
#include "penstock/load.h"

namespace penstock::cli {

// What stands before and behind the data: page.html with its style and scripts, embedded by cmake/EmbedPage.cmake.
std::string_view page_before_data() noexcept;
std::string_view page_after_data() noexcept;

/// Gives away a page, of which `write` writes the data as JSON: members of the object that is open.
void write_page(const JsonWriter::Give& give, const std::function<void(JsonWriter&)>& write);

/// What the page's script draws, and of what: the first members.
void write_kind(JsonWriter& out, std::string_view kind, std::string_view path);

/// Where a page is written: a file or an object, which appears whole or not at all, or standard output for "-".
struct PageFile {
  std::string path;
  bool force = false;  ///< replaces a file that exists
  bool quiet = false;  ///< says nothing of what was written

  /// Refuses where it is one of the files that are read, or exists and `force` is not set. kInvalidArgument.
  void require_free(const Archive& from) const;
  void require_free(const std::string& from) const;
  /// The first half of that, for further files.
  void require_other(const Archive& from) const;
  /// Writes the page around the data that `data` writes, and says so on standard output unless `quiet`.
  void write(const std::function<void(JsonWriter&)>& data) const;
};

}  // namespace penstock::cli
