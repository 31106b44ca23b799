// Only the digits of the count change, and the spaces at the end that make up for them: byte order, version and a
// type's notation stay as their writer put them. The result is parsed again before it counts.

#include "format/numpy/npy_growth.h"

#include <algorithm>
#include <limits>
#include <span>

#include "core/format.h"
#include "format/numpy/npy_header.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSpace = " \t\n\r\f";

/// Where the count's digits lie. A field of the type may be called "shape" too, but no colon and bracket follow it.
struct Digits {
  std::size_t at = std::string_view::npos;
  std::size_t count = 0;
};

Digits digits_of(std::string_view header) {
  constexpr std::string_view kKey = "shape";
  const auto skip = [&](std::size_t at) { return std::min(header.find_first_not_of(kSpace, at), header.size()); };
  for (std::size_t key = header.find(kKey); key != header.npos; key = header.find(kKey, key + 1)) {
    std::size_t at = skip(key + kKey.size() + 1);
    if (at >= header.size() || header[at] != ':') continue;
    at = skip(at + 1);
    if (at >= header.size() || header[at] != '(') continue;
    at = skip(at + 1);
    const std::size_t end = std::min(header.find_first_not_of(kDigits, at), header.size());
    if (end > at) return {at, end - at};
  }
  return {};
}

/// Spaces before the newline at the end.
std::size_t room_of(std::string_view header) {
  const std::size_t last = header.find_last_not_of(kSpace);
  const std::size_t newline = header.size() - 1;
  return last == header.npos ? 0 : newline - std::min(newline, last + 1);
}

}  // namespace

std::int64_t npy_row_limit(std::string_view header) {
  constexpr std::size_t kAllDigits = std::numeric_limits<std::int64_t>::digits10;
  const Digits digits = digits_of(header);
  const std::size_t room = digits.count + room_of(header);
  if (room > kAllDigits) return std::numeric_limits<std::int64_t>::max();
  std::int64_t limit = 0;
  for (std::size_t i = 0; i < room; ++i) limit = limit * 10 + 9;
  return limit;
}

std::string with_npy_rows(std::string_view header, std::int64_t rows, std::string_view path) {
  const Digits digits = digits_of(header);
  const std::string count = std::to_string(rows);
  if (digits.count == 0 || count.size() > digits.count + room_of(header)) {
    throw Error(ErrorCode::kLimit,
                core::format("the file's header has no room for {} rows: load the array and save it anew", rows),
                {std::string(path)});
  }
  std::string out(header);
  out.replace(digits.at, digits.count, count);
  out.pop_back();  // the newline
  out.resize(header.size() - 1, ' ');
  out += '\n';
  const NpyHeader before = parse_npy_header(std::as_bytes(std::span(header)), path);
  const NpyHeader after = parse_npy_header(std::as_bytes(std::span(out)), path);
  if (after.shape != before.shape.drop_front(1).prepend(rows) || after.dtype != before.dtype) {
    throw Error(ErrorCode::kUnsupported,
                "the file's header is written in a way that its count cannot be changed: load the array and save it "
                "anew",
                {std::string(path)});
  }
  return out;
}

}  // namespace penstock::format
