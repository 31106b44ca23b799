#include "io/remote/settings.h"

#include <cmath>
#include <cstdint>

#include "core/ascii.h"
#include "core/environment.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"
#include "io/remote/values.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

std::chrono::milliseconds seconds(double count) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(count * 1000));
}

/// Whether a part of a path is "$HOME" or "${HOME}", which files of settings and quotes keep from being replaced.
bool has_shell_variable(std::string_view path) {
  for (std::size_t at = path.find('$'); at < path.size(); at = path.find('$', at + 1)) {
    const char next = at + 1 < path.size() ? path[at + 1] : '/';
    if ((at == 0 || path[at - 1] == '/') && (core::is_letter(next) || next == '_' || next == '{')) return true;
  }
  return false;
}

/// A program that gave an option has set no variable.
std::string called(std::string_view name) {
  const ValuesPtr& values = ValuesScope::current();
  const bool is_option = values && values->of.find(name) != values->of.end();
  return core::format("{} {}", is_option ? "the option in place of the setting" : "the setting", name);
}

std::size_t requests() { return static_cast<std::size_t>(whole_number("PENSTOCK_REMOTE_REQUESTS", 1, 1024, 64)); }

}  // namespace

double number(const char* name, double least, double most, double otherwise) {
  const std::string text = variable(name);
  if (text.empty()) return otherwise;
  const auto found = core::parse_number<double>(text);
  if (found && *found >= least && *found <= most) return *found;
  throw Error(ErrorCode::kInvalidArgument, core::format("{} is {}; it must be a number from {} to {}", called(name),
                                                        core::quoted(text), least, most));
}

std::uint64_t whole_number(const char* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) {
  const double out =
      number(name, static_cast<double>(least), static_cast<double>(most), static_cast<double>(otherwise));
  if (out == std::floor(out)) return static_cast<std::uint64_t>(out);
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} is {}; it must be a whole number", called(name), core::quoted(variable(name))));
}

bool is_on(const char* name) { return is_on(name, variable(name)); }

bool is_on(std::string_view name, const std::string& text) {
  const std::string word = core::lower(core::trimmed(text));
  if (word.empty() || word == "0" || word == "false" || word == "no" || word == "off") return false;
  if (word == "1" || word == "true" || word == "yes" || word == "on") return true;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} is {}; it must be 1 or 0", called(name), core::quoted(text)));
}

std::string variable(const char* name) {
  if (const ValuesPtr& values = ValuesScope::current()) {
    if (const auto found = values->of.find(name); found != values->of.end()) return found->second;
  }
  const char* const value = core::environment(name);
  return value != nullptr ? value : "";
}

std::string first_variable(std::initializer_list<const char*> names) {
  std::string value;
  for (auto name = names.begin(); value.empty() && name != names.end(); ++name) value = variable(*name);
  return value;
}

std::string or_else(std::string value, std::string_view otherwise) {
  return value.empty() ? std::string(otherwise) : value;
}

std::string path_variable(const char* name) {
  const std::string path = variable(name);
  const bool is_others = path.starts_with('~') && path != "~" && !path.starts_with("~/");
  if (is_others || has_shell_variable(path) || path.find("://") < path.find('/')) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} is {}; it must be a path of this machine, written whole: of what shells and "
                             "URLs have, only ~/ may begin it",
                             called(name), core::quoted(path)));
  }
  const std::string out = with_home(path);
  if (!path.empty() && out.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("{} is {}, and HOME, which ~ stands for, is not set; write the path whole", called(name),
                             core::quoted(path)));
  }
  return out;
}

std::string with_home(std::string path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const std::string home = variable("HOME");
  return home.empty() ? home : path.replace(0, 1, home);
}

void require_line(std::string_view text, std::string_view name) {
  if (text.find_first_of("\r\n") == std::string_view::npos) return;
  throw Error(ErrorCode::kInvalidArgument, core::format("{} has a line break in it", name));
}

std::size_t process_requests() {
  const ValuesScope none(nullptr);
  return requests();
}

Settings settings() {
  Settings out;
  out.requests = requests();
  out.timeout = seconds(number("PENSTOCK_REMOTE_TIMEOUT", 0.01, 3600, 30));
  out.retry_time = seconds(number("PENSTOCK_REMOTE_RETRY_SECONDS", 0, 86400, 60));
  out.hedges = number("PENSTOCK_REMOTE_HEDGES", 0, 1, 0.05);
  out.ca_file = path_variable("SSL_CERT_FILE");
  out.ca_folder = path_variable("SSL_CERT_DIR");
  return out;
}

}  // namespace penstock::io::remote
