#include "cli/show/caption.h"

#include <algorithm>
#include <cmath>

#include "cli/terminal/terminal.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

std::string what_of(const Reading& reading, const Sheet& sheet) {
  std::string out = core::format("{} {} x {}", reading.layout_name(), reading.height, reading.width);
  if (reading.is_strip)
    out = core::format("strip of {}", counted(static_cast<std::uint64_t>(reading.width), "element"));
  if (reading.layout != Layout::kHW) out += core::format(" in {} channels", reading.channels);
  if (reading.pictures > 1) {
    out = core::format("{} of {} pictures, each {}", sheet.shown,
                       human_count(static_cast<std::uint64_t>(reading.pictures)), out);
  }
  const bool is_smaller = sheet.width != static_cast<std::size_t>(reading.width) ||
                          sheet.height != static_cast<std::size_t>(reading.height);
  if (is_smaller) out += core::format(", as means of blocks in {} x {}", sheet.height, sheet.width);
  if (sheet.shown < static_cast<std::size_t>(reading.pictures)) out += "; choose others with --slice";
  return out;
}

std::string range_of(const DType& dtype, const Reading& reading, const Drawn& drawn) {
  const bool is_uncertain = reading.channels == 4 && !drawn.colouring.has_alpha;
  if (!drawn.seen.any_finite()) return "no finite element";
  const long double least = drawn.base + static_cast<long double>(drawn.seen.least);
  const long double greatest = drawn.base + static_cast<long double>(drawn.seen.greatest);
  return core::format("{} from {} to {}{}; values {} to {}{}", drawn.colouring.name(),
                      number_text(dtype, drawn.colouring.range.low), number_text(dtype, drawn.colouring.range.high),
                      is_uncertain ? " without the fourth channel, which is no alpha" : "", number_text(dtype, least),
                      number_text(dtype, greatest), advice_of(dtype, drawn.colouring.range, least, greatest));
}

}  // namespace

std::string number_text(const DType& dtype, long double number) {
  const bool is_whole = dtype.is_integer() && std::floor(number) == number;
  return is_whole ? core::format("{:.0f}", number) : core::format("{:.6g}", number);
}

std::string title_of(const LazyTensor& tensor) {
  return core::format("{}  {} {}", printable(tensor.name()), printable(tensor.dtype().name()),
                      tensor.shape().to_string());
}

std::string advice_of(const DType& dtype, const NumberRange& range, long double least, long double greatest) {
  constexpr long double kLittle = 8;
  if (!(least < greatest) || (greatest - least) * kLittle > range.high - range.low) return {};
  return core::format("; --range={},{} shows more", number_text(dtype, least), number_text(dtype, greatest));
}

std::string ill_of(const Seen& seen) {
  std::string out;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count != 0) out += core::format("{}{} {}", out.empty() ? "" : ", ", human_count(count), what);
  };
  add(seen.nans, "NaN (magenta or ?)");
  add(seen.positive_infinities, "+Inf (green or !)");
  add(seen.negative_infinities, "-Inf (green or !)");
  return out;
}

std::string wrapped(const std::string& text, std::size_t columns) {
  std::string out;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (line > 0 && line + 1 + length > columns) {
      out += '\n';
      line = 0;
    } else if (line > 0) {
      out += ' ';
      ++line;
    }
    out.append(text, at, length);
    line += length;
    at = end + 1;
  }
  return out + "\n";
}

std::string caption_of(const LazyTensor& tensor, const Reading& reading, const Sheet& sheet, const Drawn& drawn,
                       std::size_t columns) {
  const std::string ill = ill_of(drawn.seen);
  return wrapped(title_of(tensor), columns) + wrapped(what_of(reading, sheet), columns) +
         wrapped(range_of(tensor.dtype(), reading, drawn), columns) + (ill.empty() ? "" : wrapped(ill, columns));
}

}  // namespace penstock::cli
