// The data stands in an element that browsers do not run. Its text must not end that element, whatever names a file
// has, so that the characters that mean something to HTML are written as JSON may write any character: \u003c. They
// occur in strings alone. U+2028 and its like are escaped by core::json_quoted.

#include "cli/report/page.h"

#include <string>

#include "cli/json/json.h"
#include "core/shown_url.h"
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

}  // namespace penstock::cli
