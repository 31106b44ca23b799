#pragma once

// The page of `penstock report`, one HTML file: text that CMake embeds, with the data as JSON between.

#include <functional>
#include <string_view>

#include "cli/json/json_writer.h"

namespace penstock::cli {

// What stands before and behind the data: page.html with its style and scripts, embedded by cmake/EmbedPage.cmake.
std::string_view page_before_data() noexcept;
std::string_view page_after_data() noexcept;

/// Gives away a page, of which `write` writes the data as JSON: members of the object that is open.
void write_page(const JsonWriter::Give& give, const std::function<void(JsonWriter&)>& write);

/// What the page's script draws, and of what: the first members.
void write_kind(JsonWriter& out, std::string_view kind, std::string_view path);

}  // namespace penstock::cli
