// When no format recognises a file, the error says what it looks like. The marks of other formats are compared with the
// first bytes; text and pickles are guessed at.

#include "format/foreign.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/ascii.h"
#include "core/format.h"
#include "core/text.h"

namespace penstock::format {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  std::string_view name;
  std::size_t at = 0;
};

constexpr std::string_view kPickle =
    "a plain pickle, which only running it could load: save it with torch.save or numpy.save";

constexpr auto kMagics = std::to_array<Magic>({
    {"\x89HDF\r\n\x1a\n"sv, "HDF5 (Keras, .h5)"},
    {"GGUF"sv, "GGUF (llama.cpp)"},
    {"lmgg"sv, "GGML (llama.cpp)"},
    {"PYTORCH1"sv, "PyTorch's container before 1.0, which torch does not read either"},
    {"\x1f\x8b"sv, "a gzip file: decompress it first"},
    {"BZh"sv, "a bzip2 file: decompress it first"},
    {"\xfd"
     "7zXZ\0"sv,
     "an xz file: decompress it first"},
    {"\x28\xb5\x2f\xfd"sv, "a Zstandard file: decompress it first"},
    {"\x04\x22\x4d\x18"sv, "an LZ4 file: decompress it first"},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive: unpack it first"},
    {"Rar!\x1a\x07"sv, "a RAR archive: unpack it first"},
    {"ustar"sv, "a tar archive whose first header is damaged: copy it again", 257},
    {"ET12"sv, "an ExecuTorch program (.pte)", 4},
    {"ET11"sv, "an ExecuTorch program (.pte)", 4},
    {"\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    {"\xff\xd8\xff"sv, "a JPEG image"},
    {"GIF8"sv, "a GIF image"},
    {"BM"sv, "a BMP image"},
    {"%PDF"sv, "a PDF document"},
    {"RIFF"sv, "a RIFF file (WAV, AVI or WebP)"},
    {"fLaC"sv, "a FLAC audio file"},
    {"OggS"sv, "an Ogg file"},
    {"\x7f"
     "ELF"sv,
     "a program or library (ELF)"},
    {"PK"sv, "a damaged zip archive"},
    {"PAR1"sv, "Parquet"},
    {"ARROW1"sv, "Arrow (Feather)"},
    {"\xff\xff\xff\xff"sv, "an Arrow stream"},
    {"MATLAB 5.0"sv, "a MATLAB file"},
    {"SQLite format 3\0"sv, "an SQLite database"},
    {"CDF\x01"sv, "NetCDF"},
    {"CDF\x02"sv, "NetCDF"},
    {"\x08\x08"sv, "ONNX, perhaps (protocol buffers)"},
    {"version https://git-lfs"sv, "a Git LFS pointer, not the file itself: run `git lfs pull`"},
    {"<!DOCTYPE"sv, "an HTML page: the download may have failed"},
    {"<html"sv, "an HTML page: the download may have failed"},
    {"<?xml"sv, "XML"},
    {"\x80\x01"sv, kPickle},
    {"\x80\x02"sv, kPickle},
    {"\x80\x03"sv, kPickle},
    {"\x80\x04"sv, kPickle},
    {"\x80\x05"sv, kPickle},
});

bool has_magic(std::string_view head, const Magic& magic) {
  return head.size() >= magic.at + magic.bytes.size() && head.substr(magic.at, magic.bytes.size()) == magic.bytes;
}

bool is_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), core::is_digit); }

/// Whether the text begins like a pickle of protocol 0, which is text: with `cmodule` (a global or an instance) and a
/// name on the next line, with `(lp0`, `(dp0` or `(tp0`, with a mark before one of these, or with a string or number
/// and its memo.
bool is_pickle_of_protocol_0(std::string_view text) {
  const auto line = [&text] {
    const std::size_t end = text.find('\n');
    const std::string_view out = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    return out;
  };
  const auto is_name = [](std::string_view name) {
    const auto is_part = [](char c) { return core::is_letter_or_digit(c) || c == '_' || c == '.'; };
    return !name.empty() && std::all_of(name.begin(), name.end(), is_part);
  };
  const auto is_memo = [](std::string_view part) { return part.starts_with('p') && is_digits(part.substr(1)); };
  while (text.starts_with('(')) text.remove_prefix(1);
  if (text.empty()) return false;
  const char opcode = text.front();
  const std::string_view first = line();
  if (opcode == 'l' || opcode == 'd' || opcode == 't') return is_memo(first.substr(1));
  if (opcode == 'c' || opcode == 'i') return is_name(first.substr(1)) && is_name(line()) && is_memo(line());
  const bool is_scalar = opcode == 'V' || opcode == 'S' || opcode == 'I' || opcode == 'L' || opcode == 'F';
  if (!is_scalar || first.size() < 2) return false;
  const std::string_view next = line();
  return is_memo(next) || next == "." || ((opcode == 'I' || opcode == 'L' || opcode == 'F') && next.starts_with('.'));
}

bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f') || byte == 0x7f;
  });
}

constexpr auto kCompressed = std::to_array<std::string_view>({".gz", ".bz2", ".xz", ".zst", ".lz4"});

}  // namespace

std::string_view compression_of(std::span<const std::byte> head, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto is_named = [name](std::string_view end) { return name.ends_with(end); };
  if (std::ranges::none_of(kCompressed, is_named)) return {};
  const auto* magic = std::ranges::find_if(kMagics, [&](const Magic& m) { return has_magic(text, m); });
  return magic != kMagics.end() && magic->name.ends_with("decompress it first") ? magic->name : std::string_view();
}

std::string describe_foreign(std::span<const std::byte> head, Quotes quotes) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto* magic = std::find_if(kMagics.begin(), kMagics.end(), [&](const Magic& m) { return has_magic(text, m); });
  if (magic != kMagics.end()) return std::string(magic->name);
  const std::string_view start = text.substr(0, 16);
  if (std::all_of(start.begin(), start.end(), [](char c) { return c == '\0'; })) {
    return "zero bytes: the file may be a hole that was never written";
  }
  if (is_pickle_of_protocol_0(text)) return std::string(kPickle);
  const bool is_words = is_text(text);
  const bool quotes_content = quotes != Quotes::kNothing;
  if (is_words) return quotes_content ? core::format("text that begins {}", core::quoted(text.substr(0, 24))) : "text";
  std::string hex;
  for (const char c : start) hex += core::format("{}{:02x}", hex.empty() ? "" : " ", static_cast<unsigned char>(c));
  return core::format(
      "unknown bytes{}; numbers without a header are read by penstock.raw(path, dtype) or numpy.memmap(path, dtype), "
      "and by the command with --dtype",
      quotes_content ? core::format(" ({})", hex) : std::string());
}

}  // namespace penstock::format
