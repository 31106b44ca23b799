#pragma once

// A file as a move for the engine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/copy/crc32.h"
#include "io/move/engine.h"
#include "io/source/source.h"
#include "support/files.h"

namespace penstock::test {

inline Buffer zeroed(std::size_t bytes) {
  Buffer buffer = Buffer::allocate(bytes);
  std::fill_n(buffer.data(), bytes, std::byte{0});
  return buffer;
}

inline std::span<const std::byte> view(const Buffer& buffer) { return {buffer.data(), buffer.size()}; }

/// A file of some megabytes that is read into one buffer.
class WholeFile {
 public:
  explicit WholeFile(std::size_t size, const io::ReadCosts& costs = {.piece = 300'000})
      : bytes(numbered_bytes(size)), buffers{zeroed(size)} {
    write_file(path(), bytes);
    sources = {open_source(path())};
    const io::Piece piece = {.length = size};
    move.plan = io::make_plan({&piece, 1}, costs);
    move.sources = sources;
    move.buffers = buffers;
  }
  std::string path() const { return folder / "whole"; }
  bool arrived() const { return std::ranges::equal(view(buffers[0]), bytes); }
  io::Checksum checksum(std::uint64_t offset, std::uint64_t length) const {
    return checksum(offset, length, io::crc32(0, std::span(bytes).subspan(offset, length)));
  }
  io::Checksum checksum(std::uint64_t offset, std::uint64_t length, std::uint32_t recorded) const {
    const io::Record record{
        .crc32 = recorded, .bytes = length, .path = sources[0].name(), .offset = offset, .name = "record"};
    return {.buffer_offset = offset, .length = length, .check = {record, true}};
  }

  TemporaryFolder folder;
  std::vector<std::byte> bytes;
  std::vector<Source> sources;
  std::vector<Buffer> buffers;
  io::Move move;
};

}  // namespace penstock::test
