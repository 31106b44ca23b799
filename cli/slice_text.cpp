#include "slice_text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kEllipsis = "...";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    std::string_view part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse(std::string_view part, std::string_view why) {
  throw Error(ErrorCode::kInvalidArgument,
              core::format("the slice part {} {}; write integers and start:stop:step as in Python, such as 0:4,:,2",
                           core::quoted(part), why));
}

std::optional<std::int64_t> parse_integer(std::string_view text, std::string_view part) {
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) refuse(part, "has a number that does not fit in 64 bits");
  if (error != std::errc{} || end != text.data() + text.size()) refuse(part, "is not a number or a range");
  return value;
}

LazyTensor narrow(const LazyTensor& tensor, std::size_t dim, std::string_view part) {
  const auto bounds = split(part, ':');
  if (bounds.size() > 3) refuse(part, "has more than start, stop and step");
  const std::int64_t start = parse_integer(bounds[0], part).value_or(0);
  const std::int64_t stop = parse_integer(bounds[1], part).value_or(std::numeric_limits<std::int64_t>::max());
  const std::int64_t step = bounds.size() == 3 ? parse_integer(bounds[2], part).value_or(1) : 1;
  if (step < 1) refuse(part, "has a step below 1");
  return tensor.slice(dim, start, stop, step);
}

}  // namespace

LazyTensor apply_slice(LazyTensor tensor, std::string_view text) {
  if (text.empty()) refuse(text, "is empty");
  const auto parts = split(text, ',');
  const auto ellipses = static_cast<std::size_t>(std::count(parts.begin(), parts.end(), kEllipsis));
  const std::size_t rank = tensor.shape().rank();
  if (ellipses > 1) refuse(kEllipsis, "may stand only once");
  if (parts.size() - ellipses > rank) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the slice {} has {} parts for a tensor of shape {}", core::quoted(text),
                             parts.size() - ellipses, tensor.shape().to_string()));
  }
  std::size_t dim = 0;
  for (const std::string_view part : parts) {
    if (part == kEllipsis) {
      dim += rank - (parts.size() - 1);
    } else if (part.find(':') != std::string_view::npos) {
      tensor = narrow(tensor, dim++, part);
    } else if (const auto index = parse_integer(part, part)) {
      tensor = tensor.select(dim, *index);
    } else {
      refuse(part, "is empty");
    }
  }
  return tensor;
}

}  // namespace penstock::cli
