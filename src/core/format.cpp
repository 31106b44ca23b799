#include "core/format.h"

#include <iterator>

namespace penstock::core {

std::string vformat(fmt::string_view pattern, fmt::format_args arguments) { return fmt::vformat(pattern, arguments); }

void vappend(std::string& text, fmt::string_view pattern, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(text), pattern, arguments);
}

void vprint(std::FILE* stream, fmt::string_view pattern, fmt::format_args arguments) {
  fmt::vprint(stream, pattern, arguments);
}

}  // namespace penstock::core
