#pragma once

#include <cstdint>

#include "penstock/source.h"

namespace penstock::io {

/// The bytes [offset, offset + length) of `of` as a source of its own, under the same name. Errors count offsets from
/// the window's begin. It has no descriptor, because reads of one would not be shifted. kTruncated where `of` is
/// shorter.
Source window_of(Source of, std::uint64_t offset, std::uint64_t length);

/// Where the bytes of a window lie.
struct WindowPlace {
  const Source* of = nullptr;  ///< null: the source is no window
  std::uint64_t offset = 0;
};
WindowPlace window_place(const ByteSource& source) noexcept;

}  // namespace penstock::io
