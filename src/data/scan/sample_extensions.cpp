#include "data/scan/sample_extensions.h"

#include <algorithm>

#include "format/format.h"

namespace penstock::data {

namespace {

std::vector<std::string_view> collect() {
  std::vector<std::string_view> out;
  for (const format::Format& format : format::formats()) {
    if (format.is_index || format.documents != nullptr || format.holds_samples) continue;
    for (const std::string_view extension : format.extensions) {
      if (std::ranges::find(out, extension) == out.end()) out.push_back(extension);
    }
  }
  return out;
}

}  // namespace

const std::vector<std::string_view>& sample_extensions() {
  static const std::vector<std::string_view> extensions = collect();
  return extensions;
}

bool is_sample_name(std::string_view name) {
  const auto& extensions = sample_extensions();
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  const auto fits = [&](std::string_view extension) {
    return name.size() >= extension.size() &&
           std::equal(name.end() - static_cast<std::ptrdiff_t>(extension.size()), name.end(), extension.begin(), same);
  };
  return !name.empty() && name[0] != '.' && std::any_of(extensions.begin(), extensions.end(), fits);
}

}  // namespace penstock::data
