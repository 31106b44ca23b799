// The samples of a batch that lie behind URLs are asked for together, because each answer takes as long as all: a batch
// costs the time of one request, as far as so many may be in flight.

#include "data/files/open_urls.h"

#include <algorithm>
#include <string>

namespace penstock::data {

std::vector<io::remote::Opened> open_urls(const PathTable& paths, std::span<const std::int64_t> indices,
                                          std::uint64_t small) {
  if (!paths.has_urls()) return {};
  std::vector<std::string> urls;
  std::vector<std::uint64_t> heads;
  for (const std::int64_t index : indices) {
    if (!paths.is_url(index)) continue;
    urls.push_back(paths.path(index));
    const std::uint64_t bytes = paths.bytes_on_disk(index);
    heads.push_back(bytes <= small ? std::max<std::uint64_t>(bytes, 1) : io::remote::RemoteSource::kHead);
  }
  return io::remote::open_all(urls, heads, small);
}

}  // namespace penstock::data
