#pragma once

// What tells a URL from a path. Outside of io few have to ask: io/locations.h, open_source and open_output answer what
// callers want to know.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "penstock/error.h"

namespace penstock::io {

/// Whether it is a URL that is read over a network (io/remote): "s3://...". A file may be called "s3:x".
inline bool is_url(std::string_view text) noexcept {
  constexpr auto kSchemes = std::to_array<std::string_view>({"http://", "https://", "s3://", "gs://", "hf://"});
  return std::ranges::any_of(kSchemes, [text](std::string_view scheme) { return text.starts_with(scheme); });
}

/// kUnsupported for a URL, where only files of this machine can be changed, or written otherwise than from front to
/// end.
inline void require_no_url(std::string_view path) {
  if (!is_url(path)) return;
  throw Error(ErrorCode::kUnsupported,
              "this can be done with a file of this machine alone, and not with a URL; write a file here, and put it "
              "there with `penstock convert` or `save`",
              {.path = std::string(path)});
}

}  // namespace penstock::io
