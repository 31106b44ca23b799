#pragma once

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

/// kUnsupported for a URL, where only files of this machine can be written or changed.
inline void require_no_url(std::string_view path) {
  if (!is_url(path)) return;
  // Behind a '?' there may be a secret.
  throw Error(ErrorCode::kUnsupported,
              "URLs can be read and not written; write a file of this machine, and copy it there",
              {.path = std::string(path.substr(0, path.find('?')))});
}

}  // namespace penstock::io
