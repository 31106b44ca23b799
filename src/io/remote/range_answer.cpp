#include "io/remote/range_answer.h"

#include <algorithm>
#include <utility>

#include "core/ascii.h"
#include "core/format.h"
#include "core/parse_number.h"
#include "core/text.h"

namespace penstock::io::remote {

std::optional<std::uint64_t> byte_count(std::string_view text) {
  const auto count = core::parse_number<std::uint64_t>(text);
  return count && std::in_range<std::int64_t>(*count) ? count : std::nullopt;
}

std::optional<ContentRange> content_range(std::string_view text) {
  if (core::lower(text.substr(0, 6)) != "bytes ") return std::nullopt;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange out{.size = byte_count(text.substr(slash + 1))};
  const std::string_view range = text.substr(0, slash);
  if (range == "*") return out;
  const std::optional<std::uint64_t> first = byte_count(range.substr(0, range.find('-')));
  const std::optional<std::uint64_t> last = byte_count(range.substr(std::min(range.size(), range.find('-') + 1)));
  if (!first || !last || *last < *first) return std::nullopt;
  out.first = *first;
  out.last = *last;
  return out;
}

std::string range_header(std::uint64_t offset, std::uint64_t bytes) {
  return core::format("Range: bytes={}-{}", offset, offset + bytes - 1);
}

Verdict no_ranges() {
  return fail(ErrorCode::kUnsupported,
              "the server answers a range of the object with all of it; it cannot be read in parts, so download it, or "
              "ask another server");
}

Verdict no_object(const Answer& answer) {
  return fail(ErrorCode::kIo, core::format("the server answered {}, which brings no bytes of the object; check the URL",
                                           answer.status));
}

bool is_coded(const Answer& answer) {
  const std::string coding = answer.header("content-encoding");
  return !coding.empty() && coding != "identity" && coding != "aws-chunked";
}

Verdict coded(const Answer& answer) {
  return fail(ErrorCode::kUnsupported,
              core::format("the server sends the object coded ({}, which Content-Encoding says), so that the bytes are "
                           "not the object's; have it send the object as it is, or download it first",
                           core::quoted(answer.header("content-encoding"))));
}

Verdict short_body(const Answer& answer, std::uint64_t wanted) {
  if (is_coded(answer)) return coded(answer);
  return again(core::format("the server sent {} of {} bytes", answer.received, wanted));
}

}  // namespace penstock::io::remote
