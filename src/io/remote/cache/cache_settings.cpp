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
namespace {

/// A block, and the tenth that is free after blocks were deleted.
constexpr std::uint64_t kLeastBytes = 2'000'000;

}  // namespace

CacheSettings cache_settings() {
  CacheSettings out{.folder = path_variable("PENSTOCK_CACHE")};
  if (out.folder.empty()) return out;
  if (const std::string text = variable("PENSTOCK_CACHE_BYTES"); !text.empty()) {
    const std::optional<std::uint64_t> bytes = core::parse_bytes(text);
    if (!bytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the setting PENSTOCK_CACHE_BYTES is {}; it must be a size, such as 50GB or 500 MiB",
                               core::quoted(text)));
    }
    if (*bytes < kLeastBytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  core::format("the setting PENSTOCK_CACHE_BYTES is {}, which has no room for a block of 1 MiB; it "
                               "must be {} MB or more; unset PENSTOCK_CACHE to do without a cache",
                               core::quoted(text), kLeastBytes / 1'000'000));
    }
    out.limit = *bytes;
  }
  constexpr std::uint64_t kYear = std::uint64_t{366} * 24 * 3600;
  out.trust = std::chrono::seconds(whole_number("PENSTOCK_CACHE_TRUST_SECONDS", 0, kYear, 0));
  return out;
}

}  // namespace penstock::io::remote
