#include <cstdint>
#include <optional>
#include <string>

#include "core/byte_size.h"
#include "core/format.h"
#include "core/text.h"
#include "io/remote/cache/block_cache.h"
#include "io/remote/settings.h"
#include "penstock/error.h"

namespace penstock::io::remote {

CacheSettings cache_settings() {
  CacheSettings out{.folder = variable("PENSTOCK_CACHE")};
  if (out.folder.empty()) return out;
  if (const std::string text = variable("PENSTOCK_CACHE_BYTES"); !text.empty()) {
    const std::optional<std::uint64_t> bytes = core::parse_bytes(text);
    if (!bytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the variable PENSTOCK_CACHE_BYTES is {}; it must be a size, such as 50GB or 500 MiB",
                               core::quoted(text)));
    }
    out.limit = *bytes;
  }
  constexpr double kYear = 366.0 * 24 * 3600;
  out.trust = std::chrono::seconds(static_cast<std::int64_t>(number("PENSTOCK_CACHE_TRUST_SECONDS", 0, kYear, 0)));
  return out;
}

}  // namespace penstock::io::remote
