#include "support/mutator.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/input.h"
#include "support/tar_mending.h"
#include "support/zip_mending.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace penstock::fuzz {

namespace {

using Bytes = std::vector<std::byte>;

/// Choices that an input without any gets.
constexpr std::size_t kUsualChoices = 32;
constexpr std::size_t kTarHeader = 512;

void mutate(Bytes& bytes, std::size_t most) {
  const std::size_t size = bytes.size();
  if (std::max(most, size) == 0) return;  // libFuzzer wants a byte to write to
  bytes.resize(std::max(most, size));
  auto* const data = reinterpret_cast<std::uint8_t*>(bytes.data());
  bytes.resize(LLVMFuzzerMutate(data, size, bytes.size()));
}

/// One member changed, longer or shorter, in an archive without a fault.
void mutate_member(Bytes& file, std::size_t most, std::mt19937& random) {
  auto members = members_of(file);
  if (!members || members->empty()) return mutate(file, most);
  std::vector<std::byte>& content = (*members)[random() % members->size()].content;
  const std::size_t room = most - std::min(most, file.size());
  mutate(content, content.size() + room);
  const bool as_torch = members->front().name.find('/') != std::string::npos;
  const std::string archive = archive_of(*members, as_torch);
  if (archive.empty() || archive.size() > most) return;
  const auto bytes = std::as_bytes(std::span(archive));
  file.assign(bytes.begin(), bytes.end());
}

/// A content, a header, or the order of the members changed, in an archive whose checksums hold.
void mutate_tar(Bytes& file, std::size_t most, std::mt19937& random) {
  TarPieces archive = pieces_of(file);
  if (archive.pieces.empty()) return mutate(file, most);
  const std::size_t chosen = random() % archive.pieces.size();
  TarPiece& piece = archive.pieces[chosen];
  std::size_t sized = archive.pieces.size();
  switch (random() % 4) {
    case 0:
      mutate(piece.content, piece.content.size() + most - std::min(most, file.size()));
      sized = chosen;
      break;
    case 1:
      mutate(piece.header, piece.header.size());
      piece.header.resize(kTarHeader);
      break;
    case 2:
      archive.pieces.insert(archive.pieces.begin() + static_cast<std::ptrdiff_t>(random() % archive.pieces.size()),
                            TarPiece(piece));
      break;
    default:
      archive.pieces.erase(archive.pieces.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  const Bytes changed = archive_of(archive, sized);
  if (changed.size() <= most) file = changed;
}

void mutate_any(Bytes& file, std::size_t most, std::mt19937& random) {
  const unsigned way = is_zip(file) ? random() % 4 : 3;
  if (way == 0) return mutate_member(file, most, random);
  mutate(file, most);
  if (way == 1) mend_checksums(file);
}

std::size_t put(const Bytes& bytes, std::span<std::uint8_t> data) {
  const std::size_t size = std::min(bytes.size(), data.size());
  if (size != 0) std::memcpy(data.data(), bytes.data(), size);
  return size;
}

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace

std::size_t mutate_file(std::span<std::uint8_t> data, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  const auto bytes = std::as_bytes(data.first(size));
  Bytes file(bytes.begin(), bytes.end());
  mutate_any(file, data.size(), random);
  return put(file, data);
}

std::size_t mutate_tar_file(std::span<std::uint8_t> data, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  const auto bytes = std::as_bytes(data.first(size));
  Bytes file(bytes.begin(), bytes.end());
  if (random() % 4 == 0) {
    mutate(file, data.size());
  } else {
    mutate_tar(file, data.size(), random);
  }
  return put(file, data);
}

std::size_t mutate_file_and_choices(std::span<std::uint8_t> data, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  const Input input = split_input(data.data(), size);
  Bytes file(input.file.begin(), input.file.end());
  Bytes choices(input.choices.begin(), input.choices.end());
  if (random() % 3 == 0) {
    mutate(choices, std::min(std::max(choices.size(), kUsualChoices), kMostChoices));
  } else {
    const std::size_t tail = choices.size() + 1 + kChoicesMark.size();
    mutate_any(file, data.size() - std::min(data.size(), tail), random);
  }
  append(file, choices);
  file.push_back(static_cast<std::byte>(choices.size()));
  append(file, std::as_bytes(std::span(kChoicesMark)));
  return put(file, data);
}

}  // namespace penstock::fuzz
