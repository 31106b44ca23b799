#include "simulator/ptx.h"

#include <algorithm>
#include <cstdlib>
#include <regex>

namespace penstock::simulator {
namespace {

std::size_t type_bytes(std::string_view type) {
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 0;
  return static_cast<std::size_t>(std::atoi(std::string(type.substr(digits)).c_str())) / 8;
}

// ".param .align 8 .b8 name_param_0[288]" or ".param .u64 name_param_1"
std::vector<std::size_t> read_parameters(const std::string& text) {
  static const std::regex kParameter(
      R"(\.param(?:\s+\.align\s+\d+)?\s+\.([bsuf]\d+)(?:\s+\.ptr[^,]*?)?\s+[\w$%]+(?:\[(\d+)\])?)");
  std::vector<std::size_t> sizes;
  for (std::sregex_iterator at(text.begin(), text.end(), kParameter), end; at != end; ++at) {
    const std::size_t count = (*at)[2].matched ? std::strtoull((*at)[2].str().c_str(), nullptr, 10) : 1;
    sizes.push_back(type_bytes((*at)[1].str()) * count);
  }
  return sizes;
}

int read_version(std::string_view text) {
  const std::size_t at = text.find("\n.version ");
  if (at == std::string_view::npos) return 0;
  const std::string number(text.substr(at + 10, 8));
  char* rest = nullptr;
  const long major = std::strtol(number.c_str(), &rest, 10);
  return *rest != '.' ? 0 : static_cast<int>(major * 10 + std::strtol(rest + 1, nullptr, 10));
}

}  // namespace

std::optional<Ptx> read_ptx(std::string_view text) {
  const std::string lines = "\n" + std::string(text);
  Ptx ptx;
  ptx.version = read_version(lines);
  if (ptx.version == 0 || lines.find("\n.target sm_") == std::string::npos) return std::nullopt;
  for (std::size_t at = 0; (at = lines.find(".entry ", at)) != std::string::npos;) {
    at += 7;
    const std::size_t open = lines.find('(', at);
    const std::size_t close = lines.find(')', at);
    if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
    std::string name = lines.substr(at, open - at);
    name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return c == ' ' || c == '\n'; }), name.end());
    ptx.entries.emplace(std::move(name), read_parameters(lines.substr(open, close - open)));
  }
  return ptx;
}

int newest_ptx(int driver) {
  if (driver >= 13000) return 90;
  if (driver >= 12080) return 87;
  if (driver >= 12000) return 80;
  return 74;
}

}  // namespace penstock::simulator
