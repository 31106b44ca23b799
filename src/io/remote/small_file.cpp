#include "io/remote/small_file.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <sstream>

namespace penstock::io::remote {

std::optional<std::string> text_of(const std::string& path) {
  constexpr std::uint64_t kMostText = std::uint64_t{4} << 20;
  struct stat status {};
  // A FIFO would wait for a writer.
  if (path.empty() || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (static_cast<std::uint64_t>(status.st_size) > kMostText) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? std::optional(text.str()) : std::nullopt;
}

}  // namespace penstock::io::remote
