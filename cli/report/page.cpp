// The data stands in an element that browsers do not run. Its text must not end that element, whatever names a file
// has, so that the characters that mean something to HTML are written as JSON may write any character: \u003c. They
// occur in strings alone. U+2028 and its like are escaped by core::json_quoted.

#include "cli/report/page.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cli/json/json.h"
#include "cli/output_file.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "io/file/output.h"
#include "penstock/version.h"

namespace penstock::cli {

namespace {

std::string without_markup(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else if (c == '>') {
      out += "\\u003e";
    } else if (c == '&') {
      out += "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

constexpr std::string_view kDone = "reported on";

}  // namespace

void write_page(const JsonWriter::Give& give, const std::function<void(JsonWriter&)>& write) {
  give(page_before_data());
  JsonWriter json([&give](std::string_view text) { give(without_markup(text)); });
  json.begin_object(JsonWriter::Layout::kCompact);
  write(json);
  json.end();
  json.finish();
  give(page_after_data());
}

void write_kind(JsonWriter& out, std::string_view kind, std::string_view path) {
  write_members(out, Json{{"kind", kind}, {"penstock", PENSTOCK_VERSION_STRING}, {"path", core::shown_path(path)}});
}

void PageFile::require_free(const Archive& from) const {
  if (path != kStandardOutput) cli::require_free(from.sources(), path, force, kDone);
}

void PageFile::require_free(const std::string& from) const {
  if (path != kStandardOutput) cli::require_free(from, path, force, kDone);
}

void PageFile::require_other(const Archive& from) const {
  if (path != kStandardOutput) cli::require_other(from.sources(), path, kDone);
}

void PageFile::write(const std::function<void(JsonWriter&)>& data) const {
  if (path == kStandardOutput) return write_page([](std::string_view text) { core::print("{}", text); }, data);
  const std::unique_ptr<io::Output> out = io::open_output(path, {.existing = existing(force)});
  write_page([&out](std::string_view text) { out->write_text(text); }, data);
  const std::uint64_t bytes = out->position();
  out->commit();
  if (!quiet) core::print("{}: {}\n", printable(path), core::format_bytes(bytes));
}

}  // namespace penstock::cli
