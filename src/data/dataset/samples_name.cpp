#include "data/dataset/samples_name.h"

#include <cstdint>

#include "core/fnv1a.h"
#include "core/format.h"
#include "core/text.h"
#include "data/dataset_impl.h"
#include "io/locations.h"
#include "ops/philox.h"

namespace penstock::data {

namespace {

constexpr std::int64_t kLooks = 16;

std::uint64_t hashed(std::uint64_t hash, std::string_view text) {
  return ops::philox(core::fnv1a(text, hash), text.size()).low();
}

/// Without folders above the last one, and without the query of a URL, of which descriptions show "?...".
std::string end_of_name(std::string_view name) {
  constexpr std::string_view kShownQuery = "?...";
  std::string_view path = io::path_part(name);
  name.remove_prefix(path.size());
  const std::string_view behind = name.starts_with(kShownQuery) ? name.substr(kShownQuery.size()) : std::string_view();
  const std::size_t file = path.rfind('/', path.find("['"));
  if (file != std::string_view::npos && file != 0) {
    const std::size_t folder = path.rfind('/', file - 1);
    if (folder != std::string_view::npos) path.remove_prefix(folder + 1);
  }
  return core::format("{}{}", path, behind);
}

/// What stands between names in the description of a sample of several parts.
struct Between {
  std::size_t at = std::string_view::npos;
  std::string_view text = {};
};

/// One pass: a sample may have thousands of parts, of which each asks for the next.
Between next_between(std::string_view names) {
  constexpr const char* kFirsts = ", ";
  for (std::size_t at = names.find_first_of(kFirsts); at < names.size(); at = names.find_first_of(kFirsts, at + 1)) {
    for (const std::string_view text : {", ", " or ", " to "}) {
      if (names.substr(at).starts_with(text)) return {at, text};
    }
  }
  return {};
}

}  // namespace

std::string ends_of_names(std::string_view names) {
  std::string out;
  while (true) {
    const Between next = next_between(names);
    out += end_of_name(names.substr(0, next.at));
    if (next.at == std::string_view::npos) return out;
    out += next.text;
    names.remove_prefix(next.at + next.text.size());
  }
}

std::string samples_name(const Dataset& dataset) {
  if (dataset.size() == 0) return {};
  const detail::DatasetImpl& impl = dataset.impl();
  const std::int64_t last = dataset.size() - 1;
  std::uint64_t hash = core::fnv1a("");
  for (std::int64_t look = 0; look <= kLooks; ++look) {
    const std::int64_t index = last / kLooks * look + last % kLooks * look / kLooks;
    hash = hashed(hash, ends_of_names(impl.describe(index)));
  }
  const auto shown = [&](std::int64_t index) { return core::escaped(ends_of_names(impl.describe(index))); };
  return core::format("{} to {}, {:08x}", shown(0), shown(last), static_cast<std::uint32_t>(hash >> 32U));
}

}  // namespace penstock::data
