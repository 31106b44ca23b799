#include "cli/slice_text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/option.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

std::vector<std::string_view> split_trimmed(std::string_view text, char separator) {
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

SlicePart parse_range(std::string_view part) {
  const auto bounds = split_trimmed(part, ':');
  if (bounds.size() > 3) refuse(part, "has more than start, stop and step");
  SlicePart out{.kind = SlicePart::Kind::kRange};
  out.start = parse_integer(bounds[0], part).value_or(0);
  out.stop = parse_integer(bounds[1], part).value_or(std::numeric_limits<std::int64_t>::max());
  out.step = bounds.size() == 3 ? parse_integer(bounds[2], part).value_or(1) : 1;
  if (out.step < 1) refuse(part, "has a step below 1");
  return out;
}

SlicePart parse_part(std::string_view part) {
  if (part == "...") return {};
  if (part.find(':') != std::string_view::npos) return parse_range(part);
  if (const auto index = parse_integer(part, part)) return {.kind = SlicePart::Kind::kIndex, .start = *index};
  refuse(part, "is empty");
}

std::size_t count_ellipses(const std::vector<SlicePart>& parts) {
  return static_cast<std::size_t>(std::count_if(
      parts.begin(), parts.end(), [](const SlicePart& part) { return part.kind == SlicePart::Kind::kEllipsis; }));
}

}  // namespace

std::vector<SlicePart> parse_slice(std::string_view text) {
  std::vector<SlicePart> parts;
  for (const std::string_view part : split_trimmed(text, ',')) parts.push_back(parse_part(part));
  if (count_ellipses(parts) > 1) refuse("...", "may stand only once");
  return parts;
}

LazyTensor apply_slice(LazyTensor tensor, const std::vector<SlicePart>& parts) {
  const ErrorContext where{.path = tensor.source().name(), .tensor = tensor.name()};
  const std::size_t rank = tensor.shape().rank();
  const std::size_t dims = parts.size() - count_ellipses(parts);
  if (dims > rank) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("the slice has {} for a tensor of shape {}: give {} at most", core::counted(dims, "part"),
                             tensor.shape().to_string(), rank),
                where);
  }
  std::size_t dim = 0;
  try {
    for (const SlicePart& part : parts) {
      switch (part.kind) {
        case SlicePart::Kind::kEllipsis:
          dim += rank - dims;
          break;
        case SlicePart::Kind::kRange:
          tensor = tensor.slice(dim++, part.start, part.stop, part.step);
          break;
        default:
          tensor = tensor.select(dim, part.start);
      }
    }
  } catch (const Error& error) {
    throw error.within(where);
  }
  return tensor;
}

void take_slice(Arguments& arguments, std::vector<SlicePart>& slice) {
  const auto parse = [&slice](const std::string& text) {
    try {
      slice = parse_slice(text);
    } catch (const Error& refused) {
      throw WrongUsage(std::string("--slice: ") + refused.what());
    }
  };
  arguments.add("--slice", parse, "Part of it in Python's notation, such as 0:4,:,2").takes("SLICE");
}

}  // namespace penstock::cli
