#pragma once

// What tells a URL from a path. Outside of io few have to ask: io/locations.h, open_source and open_output answer what
// callers want to know.

#include <string>
#include <string_view>

#include "core/url_scheme.h"
#include "penstock/error.h"

namespace penstock::io {

/// Whether it is a URL that is read over a network (io/remote): "s3://...". A file may be called "s3:x".
inline bool is_url(std::string_view text) noexcept { return core::url_scheme(text) != nullptr; }

/// Whether it is a URL of an object, a folder or a bucket in a store, which can be listed and written.
inline bool is_in_store(std::string_view text) noexcept {
  const core::UrlScheme* const scheme = core::url_scheme(text);
  return scheme != nullptr && scheme->is_store;
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
