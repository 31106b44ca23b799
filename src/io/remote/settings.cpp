#include "io/remote/settings.h"

#include <charconv>
#include <cstdint>

#include "core/environment.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/values.h"
#include "penstock/error.h"

namespace penstock::io::remote {
namespace {

std::chrono::milliseconds seconds(double count) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(count * 1000));
}

std::size_t requests() { return static_cast<std::size_t>(number("PENSTOCK_REMOTE_REQUESTS", 1, 1024, 64)); }

}  // namespace

double number(const char* name, double least, double most, double otherwise) {
  const std::string text = variable(name);
  if (text.empty()) return otherwise;
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end == text.data() + text.size() && out >= least && out <= most) return out;
  throw Error(ErrorCode::kInvalidArgument, core::format("the setting {} is {}; it must be a number from {} to {}", name,
                                                        core::quoted(text), least, most));
}

std::string variable(const char* name) {
  if (const ValuesPtr& values = ValuesScope::current()) {
    if (const auto found = values->of.find(std::string_view(name)); found != values->of.end()) return found->second;
  }
  const char* const value = core::environment(name);
  return value != nullptr ? value : "";
}

std::string path_variable(const char* name) { return with_home(variable(name)); }

std::string with_home(std::string path) {
  const std::string home = variable("HOME");
  if (home.empty() || (path != "~" && !path.starts_with("~/"))) return path;
  return path.replace(0, 1, home);
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
