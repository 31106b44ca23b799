#include "io/remote/cache/block_file.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock::io::remote::block_file {
namespace {

constexpr std::uint32_t kMark = 0x314b4c42;  // "BLK1"
constexpr std::size_t kFixed = 16;           // behind the text

static_assert(std::endian::native == std::endian::little, "numbers of a block's file are little-endian");

template <class Number>
void append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <class Number>
Number number_at(const std::byte* at) {
  Number out;
  std::memcpy(&out, at, sizeof(out));
  return out;
}

std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

bool read_fully(int fd, std::uint64_t offset, std::span<std::byte> first, std::span<std::byte> second = {}) {
  while (!first.empty() || !second.empty()) {
    const std::array<iovec, 2> parts = {{{first.data(), first.size()}, {second.data(), second.size()}}};
    const ssize_t got = ::preadv(fd, parts.data(), 2, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const auto some = static_cast<std::size_t>(got);
    const std::size_t of_first = std::min(some, first.size());
    first = first.subspan(of_first);
    second = second.subspan(some - of_first);
    offset += some;
  }
  return true;
}

/// How many pieces, and so hashes, a block of `length` bytes has.
std::size_t piece_count(std::uint64_t length) { return static_cast<std::size_t>((length + kPiece - 1) / kPiece); }

/// Whether pieces, of which only the last may be shorter, have the hashes that stand at `hashes`.
bool pieces_hold(std::span<const std::byte> pieces, const std::byte* hashes, std::uint64_t seed) {
  for (; !pieces.empty(); hashes += sizeof(std::uint64_t)) {
    const auto piece = pieces.first(std::min(kPiece, pieces.size()));
    if (hash_of(piece, seed) != number_at<std::uint64_t>(hashes)) return false;
    pieces = pieces.subspan(piece.size());
  }
  return true;
}

/// Whole pieces of a block, and their hashes as the file has them.
class Pieces {
 public:
  Pieces(std::uint64_t length, std::uint64_t offset, std::size_t bytes)
      : length_(length),
        first_(offset / kPiece),
        begin_(first_ * kPiece),
        end_(std::min<std::uint64_t>(length, (offset + bytes + kPiece - 1) / kPiece * kPiece)) {}

  std::uint64_t begin() const noexcept { return begin_; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(end_ - begin_); }

  bool read(int fd, std::uint64_t seed, std::span<std::byte> into) const {
    std::vector<std::byte> table(piece_count(length_) * sizeof(std::uint64_t));
    const bool to_the_end = end_ == length_;
    // The hashes lie behind the last piece, so that one call reads both.
    if (to_the_end ? !read_fully(fd, begin_, into, table)
                   : !read_fully(fd, length_, table) || !read_fully(fd, begin_, into)) {
      return false;
    }
    return pieces_hold(into, table.data() + first_ * sizeof(std::uint64_t), seed);
  }

 private:
  std::uint64_t length_;
  std::size_t first_;
  std::uint64_t begin_;
  std::uint64_t end_;
};

}  // namespace

std::uint64_t seed_of(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }

std::string ending(std::span<const std::byte> bytes, std::string_view text, std::uint64_t seed) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    append(out, hash_of(bytes.subspan(at, std::min(kPiece, bytes.size() - at)), seed));
  }
  out += text;
  append(out, seed_of(text));
  append(out, static_cast<std::uint32_t>(text.size()));
  append(out, kMark);
  return out;
}

bool read(int fd, std::uint64_t length, std::uint64_t seed, std::uint64_t offset, std::span<const Scatter> parts) {
  const auto bytes = static_cast<std::size_t>(bytes_in(parts));
  if (bytes == 0) return true;
  const Pieces pieces(length, offset, bytes);
  const bool is_whole = pieces.begin() == offset && pieces.bytes() == bytes;
  if (is_whole && parts.size() == 1 && parts[0].to != nullptr) {
    return pieces.read(fd, seed, {parts[0].to, parts[0].bytes});
  }
  // Kept from read to read: fresh memory costs more than the copy.
  thread_local std::vector<std::byte> scratch;
  scratch.resize(std::max(scratch.size(), pieces.bytes()));
  if (!pieces.read(fd, seed, std::span(scratch).first(pieces.bytes()))) return false;
  fill_parts(parts, scratch.data() + (offset - pieces.begin()));
  return true;
}

std::optional<std::string> read_text(int fd, std::uint64_t file_bytes) {
  const std::uint64_t most = std::min<std::uint64_t>(file_bytes, kMostText + kFixed);
  std::array<std::byte, kMostText + kFixed> memory;
  const auto end = std::span(memory).first(static_cast<std::size_t>(most));
  return read_fully(fd, file_bytes - most, end) ? text_in(end) : std::nullopt;
}

bool read_whole(int fd, std::span<std::byte> file) { return read_fully(fd, 0, file); }

std::optional<std::string> text_in(std::span<const std::byte> file) {
  if (file.size() < kFixed) return std::nullopt;
  const std::byte* const fixed = file.data() + file.size() - kFixed;
  const std::size_t length = number_at<std::uint32_t>(fixed + 8);
  if (number_at<std::uint32_t>(fixed + 12) != kMark || length > std::min(file.size() - kFixed, kMostText)) {
    return std::nullopt;
  }
  std::string text(reinterpret_cast<const char*>(fixed) - length, length);
  return number_at<std::uint64_t>(fixed) == seed_of(text) ? std::optional(std::move(text)) : std::nullopt;
}

bool holds(std::span<const std::byte> file, std::uint64_t length, std::uint64_t seed) {
  if (length > file.size() || file.size() - length < piece_count(length) * sizeof(std::uint64_t)) return false;
  const auto bytes = file.first(static_cast<std::size_t>(length));
  return pieces_hold(bytes, file.data() + bytes.size(), seed);
}

}  // namespace penstock::io::remote::block_file
