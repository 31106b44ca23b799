#pragma once

// Ranges in requests and answers, and what an answer to one means.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/remote/fetch.h"
#include "penstock/error.h"

namespace penstock::io::remote {

/// "bytes 0-99/1000", or "bytes */1000" of a refusal.
struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> size = {};
};
/// Nothing for what is none.
std::optional<ContentRange> content_range(std::string_view text);
/// A number of bytes as headers have it; nothing for what is none.
std::optional<std::uint64_t> byte_count(std::string_view text);

/// "Range: bytes=0-9"
std::string range_header(std::uint64_t offset, std::uint64_t bytes);

/// The server sent all of an object in place of a range.
Verdict no_ranges();
/// Its status is none that brings bytes: 202, 204.
Verdict no_object(const Answer& answer);
/// Whether it sent something else than the bytes, as Content-Encoding says; the error of that.
bool is_coded(const Answer& answer);
Verdict coded(const Answer& answer);
/// It sent less than was wanted, because the answer was cut, or because it sends something else than the bytes.
Verdict short_body(const Answer& answer, std::uint64_t wanted);

}  // namespace penstock::io::remote
