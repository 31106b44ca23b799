#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/scan/path_table.h"
#include "io/remote/remote_source.h"

namespace penstock::data {

/// The objects behind those of the paths that are URLs, in their order, all asked for at once: those of up to `small`
/// bytes come whole.
std::vector<io::remote::Opened> open_urls(const PathTable& paths, std::span<const std::int64_t> indices,
                                          std::uint64_t small);

}  // namespace penstock::data
