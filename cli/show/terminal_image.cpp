// Characters without colour say how high a value lies in its range, not how bright its colour is, so that a diverging
// map has its zeros half-way. "?" is NaN and "!" an infinity, where colour would have told.

#include "cli/show/terminal_image.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/show/png.h"
#include "cli/terminal/terminal.h"
#include "core/environment.h"
#include "core/format.h"

namespace penstock::cli {
namespace {

std::string_view variable(const char* name) {
  const char* const text = core::environment(name);
  return text == nullptr ? std::string_view() : text;
}

bool is_kitty() {
  const std::string_view term = variable("TERM");
  if (term.starts_with("screen") || term.starts_with("tmux")) return false;
  return term == "xterm-kitty" || term == "xterm-ghostty" || !variable("KITTY_WINDOW_ID").empty();
}

bool is_sixel() {
  const std::string_view term = variable("TERM");
  return term.starts_with("foot") || term.starts_with("mlterm") || term.find("sixel") != std::string_view::npos;
}

ImageWay blocks_way() {
  const std::string_view colours = variable("COLORTERM");
  return colours == "truecolor" || colours == "24bit" ? ImageWay::kBlocksTrue : ImageWay::kBlocks256;
}

std::string characters(const Raster& raster, const std::vector<std::string_view>& ramp) {
  std::string out;
  for (std::size_t y = 0; y < raster.height; ++y) {
    std::string line;
    for (std::size_t i = y * raster.width; i < (y + 1) * raster.width; ++i) {
      const std::size_t step = raster.level[i] * ramp.size() / 256;
      line += raster.marks[i] == Picture::Mark::kNone ? ramp[step] : raster.marks[i] == Picture::Mark::kNaN ? "?" : "!";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

/// The pixel before black, as terminals show what is transparent.
Rgb rgb_at(const Raster& raster, std::size_t pixel) {
  Rgb out;
  const unsigned alpha = raster.rgba[4 * pixel + 3];
  for (std::size_t i = 0; i < 3; ++i) {
    out[i] = static_cast<std::uint8_t>((raster.rgba[4 * pixel + i] * alpha + 127) / 255);
  }
  return out;
}

/// The step of xterm's cube that is nearest to a part of a colour: 0, 95, 135, 175, 215, 255.
unsigned cube_step(unsigned part) { return part < 48 ? 0 : part < 115 ? 1 : std::min(5U, (part - 35) / 40); }

unsigned palette_place(const Rgb& rgb) {
  if (rgb[0] == rgb[1] && rgb[1] == rgb[2] && rgb[0] > 3 && rgb[0] < 247) {
    return 232 + std::min(23U, (rgb[0] - 3U) / 10);
  }
  return 16 + 36 * cube_step(rgb[0]) + 6 * cube_step(rgb[1]) + cube_step(rgb[2]);
}

std::string colour_code(unsigned ground, const Rgb& rgb, bool is_true) {
  if (is_true) return core::format("{};2;{};{};{}", ground, rgb[0], rgb[1], rgb[2]);
  return core::format("{};5;{}", ground, palette_place(rgb));
}

/// Upper halves are the foreground of a half block, lower ones the background.
std::string blocks(const Raster& raster, bool is_true) {
  std::string out;
  for (std::size_t y = 0; y < raster.height; y += 2) {
    std::string before;
    for (std::size_t x = 0; x < raster.width; ++x) {
      const std::size_t pixel = y * raster.width + x;
      std::string code = colour_code(38, rgb_at(raster, pixel), is_true);
      code += y + 1 < raster.height ? ";" + colour_code(48, rgb_at(raster, pixel + raster.width), is_true) : ";49";
      if (code != before) out += core::format("\x1B[{}m", code);
      out += "▀";
      before = code;
    }
    out += "\x1B[0m\n";
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63U];
    }
  }
  return out;
}

/// kitty's protocol: a PNG in pieces of 4096 characters, all but the last with m=1.
std::string kitty(const Raster& raster) {
  constexpr std::size_t kMostCharacters = 4096;
  const std::string text = base64(png_of(raster));
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += kMostCharacters) {
    out += core::format("\x1B_G{}m={};{}\x1B\\", at == 0 ? "a=T,f=100,q=2," : "",
                        at + kMostCharacters < text.size() ? 1 : 0, std::string_view(text).substr(at, kMostCharacters));
  }
  return out + "\n";
}

/// One colour's part of a band of six rows, runs written as counts.
std::string sixel_row(const std::vector<char>& row) {
  std::string out;
  for (std::size_t at = 0; at < row.size();) {
    const auto end = std::find_if(row.begin() + static_cast<std::ptrdiff_t>(at), row.end(),
                                  [&](char other) { return other != row[at]; });
    const auto count = static_cast<std::size_t>(end - row.begin()) - at;
    if (count > 3) {
      out += core::format("!{}{}", count, row[at]);
    } else {
      out.append(count, row[at]);
    }
    at += count;
  }
  return out;
}

std::string sixel_colours() {
  constexpr std::array<unsigned, 6> kSteps{0, 95, 135, 175, 215, 255};
  const auto percent = [](unsigned part) { return (part * 100 + 127) / 255; };
  std::string out;
  for (unsigned i = 0; i < 216; ++i) {
    core::append(out, "#{};2;{};{};{}", 16 + i, percent(kSteps[i / 36]), percent(kSteps[i / 6 % 6]),
                 percent(kSteps[i % 6]));
  }
  for (unsigned i = 0; i < 24; ++i) core::append(out, "#{0};2;{1};{1};{1}", 232 + i, percent(8 + 10 * i));
  return out;
}

std::string sixel(const Raster& raster) {
  std::string out = core::format("\x1BP0;1;0q\"1;1;{};{}{}", raster.width, raster.height, sixel_colours());
  for (std::size_t top = 0; top < raster.height; top += 6) {
    std::array<std::vector<char>, 256> rows;
    for (std::size_t y = top; y < std::min(top + 6, raster.height); ++y) {
      for (std::size_t x = 0; x < raster.width; ++x) {
        std::vector<char>& row = rows[palette_place(rgb_at(raster, y * raster.width + x))];
        if (row.empty()) row.assign(raster.width, '?');
        row[x] = static_cast<char>('?' + (row[x] - '?' + (1 << (y - top))));
      }
    }
    for (std::size_t colour = 0; colour < rows.size(); ++colour) {
      if (!rows[colour].empty()) core::append(out, "#{}{}$", colour, sixel_row(rows[colour]));
    }
    out += "-";
  }
  return out + "\x1B\\\n";
}

}  // namespace

ImageWay image_way(const std::optional<std::string>& wanted) {
  if (wanted == "kitty") return ImageWay::kKitty;
  if (wanted == "sixel") return ImageWay::kSixel;
  const bool has_colour = wants_colour(stdout);
  if (wanted == "blocks") return has_colour ? blocks_way() : ImageWay::kShades;
  if (wanted == "ascii" || !has_colour || !speaks_utf8()) return ImageWay::kAscii;
  if (is_kitty()) return ImageWay::kKitty;
  return is_sixel() ? ImageWay::kSixel : blocks_way();
}

std::string_view name_of(ImageWay way) noexcept {
  constexpr std::array<std::string_view, 6> kNames{"ascii", "blocks", "blocks", "blocks", "kitty", "sixel"};
  return kNames[static_cast<std::size_t>(way)];
}

bool is_character(ImageWay way) noexcept { return way == ImageWay::kAscii || way == ImageWay::kShades; }
bool has_pixels(ImageWay way) noexcept { return way == ImageWay::kKitty || way == ImageWay::kSixel; }

std::string terminal_image(const Raster& raster, ImageWay way) {
  switch (way) {
    case ImageWay::kAscii:
      return characters(raster, {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"});
    case ImageWay::kShades:
      return characters(raster, {" ", "░", "▒", "▓", "█"});
    case ImageWay::kKitty:
      return kitty(raster);
    case ImageWay::kSixel:
      return sixel(raster);
    default:
      return blocks(raster, way == ImageWay::kBlocksTrue);
  }
}

}  // namespace penstock::cli
