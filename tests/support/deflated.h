#pragma once

#include <span>
#include <string>
#include <string_view>

#include "format/zip/inflate.h"
#include "support/bytes.h"

namespace penstock::test {

/// A raw deflate stream of the text, as zip members hold it.
inline std::string deflated(std::string_view text) {
  std::string out;
  format::DeflateStream stream([&out](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  stream.add(bytes_of(text));
  stream.finish();
  return out;
}

}  // namespace penstock::test
