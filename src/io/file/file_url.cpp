#include "io/file/file_url.h"

#include <optional>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

constexpr std::string_view kScheme = "file:";

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? core::hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? core::hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

std::string local_path(std::string_view location) {
  if (!location.starts_with(kScheme) || !location.substr(kScheme.size()).starts_with('/')) return std::string(location);
  std::string_view rest = location.substr(kScheme.size());
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::string_view host = rest.substr(0, rest.find('/'));
    if (!host.empty() && host != "localhost") {
      throw Error(ErrorCode::kUnsupported,
                  core::format("this file: URL names the host {}; only files of this machine can be opened",
                               core::quoted(host)),
                  {.path = std::string(location)});
    }
    rest.remove_prefix(host.size());
  }
  std::optional<std::string> path = percent_decoded(rest);
  if (path) return *std::move(path);
  throw Error(ErrorCode::kInvalidArgument,
              "this file: URL has a '%' without two hexadecimal digits; write '%25' for '%'",
              {.path = std::string(location)});
}

}  // namespace penstock::io
