#include "docstring.h"

#include <algorithm>

namespace penstock::python::docs {
namespace {

constexpr std::size_t kWidth = 96;

/// Appends text in lines that begin with `indent`.
void append_wrapped(std::string& out, std::string_view text, std::string_view indent) {
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == text.size() ? end : end + 1);
    if (column > 0 && column + 1 + word.size() > kWidth) {
      out += '\n';
      column = 0;
    }
    out += column == 0 ? indent : " ";
    column += (column == 0 ? indent.size() : 1) + word.size();
    out += word;
  }
}

void append_heading(std::string& out, std::string_view heading) {
  out += "\n\n";
  out += heading;
  out += '\n';
  out.append(heading.size(), '-');
}

}  // namespace

std::string docstring(std::string_view summary, std::initializer_list<Parameter> parameters, std::string_view returns) {
  std::string out;
  while (!summary.empty()) {
    const std::size_t end = std::min(summary.find("\n\n"), summary.size());
    if (!out.empty()) out += "\n\n";
    append_wrapped(out, summary.substr(0, end), "");
    summary.remove_prefix(end == summary.size() ? end : end + 2);
  }
  if (parameters.size() > 0) append_heading(out, "Parameters");
  for (const Parameter& parameter : parameters) {
    out += '\n';
    out += parameter.name;
    out += '\n';
    append_wrapped(out, parameter.text, "    ");
  }
  if (!returns.empty()) {
    append_heading(out, "Returns");
    out += '\n';
    out += returns;
  }
  return out;
}

}  // namespace penstock::python::docs
