#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::simulator {

/// What the simulator knows of PTX text.
struct Ptx {
  int version = 0;                                                       ///< 64 for ".version 6.4"
  std::map<std::string, std::vector<std::size_t>, std::less<>> entries;  ///< with the sizes of their parameters
};

/// Nothing for text without .version and .target, or with an entry that cannot be read.
std::optional<Ptx> read_ptx(std::string_view text);
/// The newest PTX version that a driver of this version knows.
int newest_ptx(int driver);

}  // namespace penstock::simulator
