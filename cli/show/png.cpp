#include "cli/show/png.h"

#include <zlib.h>

#include <string_view>

#include "penstock/error.h"

namespace penstock::cli {
namespace {

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFFU);
}

const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

void append_chunk(std::string& out, std::string_view type, std::string_view content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = out.size();
  out += type;
  out += content;
  const std::string_view summed = std::string_view(out).substr(begin);
  append_big_endian(out, static_cast<std::uint32_t>(crc32(0, bytes_of(summed), static_cast<uInt>(summed.size()))));
}

/// Each row behind its filter, 0 for none.
std::string scan_lines(const Raster& raster) {
  std::string out;
  const std::size_t channels = raster.has_alpha ? 4 : 3;
  out.reserve(raster.height * (1 + raster.width * channels));
  for (std::size_t i = 0; i < raster.width * raster.height; ++i) {
    if (i % raster.width == 0) out += '\0';
    for (std::size_t channel = 0; channel < channels; ++channel) {
      out += static_cast<char>(raster.rgba[4 * i + channel]);
    }
  }
  return out;
}

std::string deflated(std::string_view content) {
  uLongf size = compressBound(static_cast<uLong>(content.size()));
  std::string out(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(out.data()), &size, bytes_of(content),
                             static_cast<uLong>(content.size()), Z_DEFAULT_COMPRESSION);
  if (code != Z_OK) throw Error(ErrorCode::kOutOfMemory, "there is no memory to compress the picture");
  out.resize(size);
  return out;
}

}  // namespace

std::string png_of(const Raster& raster) {
  std::string out = "\x89PNG\r\n\x1A\n";
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(raster.width));
  append_big_endian(header, static_cast<std::uint32_t>(raster.height));
  header += '\x08';
  header += raster.has_alpha ? '\x06' : '\x02';
  header.append(3, '\0');
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", deflated(scan_lines(raster)));
  append_chunk(out, "IEND", {});
  return out;
}

}  // namespace penstock::cli
