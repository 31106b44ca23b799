#include "support/tar_mending.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

#include "format/tar/header.h"
#include "penstock/error.h"

namespace penstock::fuzz {
namespace {

constexpr std::size_t kBlock = format::kTarBlock;
constexpr std::size_t kSize = 124;
constexpr std::size_t kChecksum = 148;

std::size_t whole_blocks(std::size_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

std::optional<std::size_t> size_in(std::span<const std::byte> block) {
  try {
    return static_cast<std::size_t>(format::read_tar_header(block, 0, "").size);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void put(std::vector<std::byte>& header, std::size_t at, const char* text, std::size_t count) {
  std::memcpy(header.data() + at, text, count);
}

void mend(std::vector<std::byte>& header) {
  put(header, kChecksum, "        ", 8);
  unsigned sum = 0;
  for (const std::byte byte : header) sum += std::to_integer<unsigned>(byte);
  char text[16];
  std::snprintf(text, sizeof(text), "%06o", sum);
  put(header, kChecksum, text, 7);  // six digits and a zero
}

}  // namespace

TarPieces pieces_of(std::span<const std::byte> archive) {
  TarPieces out;
  while (archive.size() >= kBlock) {
    const std::span<const std::byte> block = archive.first(kBlock);
    const auto size = size_in(block);
    if (!size || *size > archive.size() - kBlock) break;
    const std::span<const std::byte> content = archive.subspan(kBlock, *size);
    out.pieces.push_back({{block.begin(), block.end()}, {content.begin(), content.end()}});
    archive = archive.subspan(std::min(archive.size(), kBlock + whole_blocks(*size)));
  }
  out.rest.assign(archive.begin(), archive.end());
  return out;
}

std::vector<std::byte> archive_of(const TarPieces& archive, std::size_t sized) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < archive.pieces.size(); ++i) {
    std::vector<std::byte> header = archive.pieces[i].header;
    const std::vector<std::byte>& content = archive.pieces[i].content;
    if (i == sized) {
      char text[16];
      std::snprintf(text, sizeof(text), "%011zo", content.size());
      put(header, kSize, text, 12);
    }
    mend(header);
    out.insert(out.end(), header.begin(), header.end());
    out.insert(out.end(), content.begin(), content.end());
    out.resize(whole_blocks(out.size()));
  }
  out.insert(out.end(), archive.rest.begin(), archive.rest.end());
  return out;
}

}  // namespace penstock::fuzz
