// Where the tensors of a file lie is decided by a few of its bytes, its frame. So these bytes are compared with those
// of earlier files, and a file that agrees takes its layout from them without being parsed.
//
//   .npy, .safetensors   |#header#|  payload ...                       |   and the size of the file
//   .pt, .npz            |#records#| payload |#record#| payload |#directory#|
//
// A small file is in memory before anyone knows what it is, so that its frame is compared at once. Offsets that differ
// from file to file come from its own directory, and its CRCs too. Of a large file only the size is known. It is taken
// to have the layout of earlier files of that size, as long as these had one layout: its frame is read together with
// its payload, in one call, and compared then (LargeFile::read). Where files of one size have several layouts, the
// frame is read first. Whenever anything does not agree, the file is parsed, so a wrong guess costs time and nothing
// else.

#include "data/files/layout_store.h"

#include <algorithm>
#include <utility>

#include "archive/archive_state.h"
#include "format/tar/sample_name.h"
#include "io/source/own_read.h"

namespace penstock::data {

namespace {

// Ragged samples have a layout for each length. When there are more than this, all are forgotten and learnt again.
constexpr std::size_t kMostKnown = 4096;
constexpr std::size_t kMostKnownBytes = std::size_t{8} << 20;
/// Files of one size that are all different (each with an identity of its own) are not worth remembering.
constexpr std::size_t kMostOfOneSize = 256;
/// Headers are mostly shorter.
constexpr std::uint64_t kUsualHead = 4096;

}  // namespace

const format::Format& LayoutStore::format_of(const Archive& archive) const {
  const format::Format& format = *detail::ArchiveState::of(archive).format;
  if (has_members_) format::require_tensors_in(format);
  return format;
}

const LayoutStore::OfOneSize* LayoutStore::of_size(std::uint64_t bytes) const {
  const auto known = by_size_.find(bytes);
  return known == by_size_.end() ? nullptr : &known->second;
}

void LayoutStore::keep(std::shared_ptr<FileLayout> layout, bool is_learnt, Scratch& scratch) {
  const auto known = by_size_.find(layout->file_bytes);
  const bool is_new_size = known == by_size_.end();
  if (is_learnt && !is_new_size && known->second.layouts.size() >= kMostOfOneSize) is_learnt = false;
  if (!is_learnt && !is_new_size && known->second.has_others) return;
  make_room(*layout, scratch);
  OfOneSize& alike = by_size_[layout->file_bytes];
  if (is_learnt) {
    alike.layouts.push_back(std::move(layout));
  } else {
    alike.has_others = true;
  }
}

const FileLayout* LayoutStore::with_directory(const format::DirectoryLayout* directory) const {
  const auto known = by_directory_.find(directory);
  return known == by_directory_.end() ? nullptr : known->second.get();
}

const FileLayout* LayoutStore::keep_by_directory(std::shared_ptr<FileLayout> layout, Scratch& scratch) {
  make_room(*layout, scratch);
  const format::DirectoryLayout* const directory = layout->directory.get();
  return by_directory_.emplace(directory, std::move(layout)).first->second.get();
}

format::DirectoryCache& LayoutStore::directories_of(const format::Format& format) {
  std::unique_ptr<format::DirectoryCache>& cache = directories_[&format];
  if (!cache) cache = format.directory_cache();
  return *cache;
}

void LayoutStore::make_room(const FileLayout& layout, Scratch& scratch) {
  const std::size_t bytes = sizeof(FileLayout) + layout.head.size() + layout.entries.size() * sizeof(TensorEntry) +
                            layout.storages.size() * sizeof(StorageEntry);
  known_bytes_ += bytes;
  if (++known_ <= kMostKnown && known_bytes_ <= kMostKnownBytes) return;
  // Samples of the batch at hand still point to what is forgotten.
  for (auto& [directory, known] : by_directory_) scratch.objects.push_back(std::move(known));
  for (auto& [size, known] : by_size_) {
    for (FileLayoutPtr& old : known.layouts) scratch.objects.push_back(std::move(old));
  }
  by_directory_.clear();
  by_size_.clear();
  known_ = 1;
  known_bytes_ = bytes;
}

std::shared_ptr<FileLayout> layout_of(const Archive& archive, std::span<const std::string> keys, Scratch& scratch) {
  auto out = std::make_shared<FileLayout>(file_sample(archive.structure(), archive.entries(), keys, scratch.structures),
                                          archive.entries(), archive.storages());
  out->file_bytes = archive.sources().front().size();
  return out;
}

bool learn_start(const Archive& archive, FileLayout& layout) {
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  if (state.format->fingerprint == nullptr) return false;
  const ByteSource& source = *archive.sources().front();
  std::vector<std::byte> head(static_cast<std::size_t>(std::min(kUsualHead, source.size())));
  io::read_own(source, 0, head);
  const std::uint64_t bytes = state.format->fingerprint(state.index, head);
  if (bytes == 0 || bytes > std::min(kMostFrame, source.size())) return false;
  const bool is_longer = bytes > head.size();
  head.resize(static_cast<std::size_t>(bytes));
  if (is_longer) io::read_own(source, 0, head);
  head.shrink_to_fit();
  layout.head = std::move(head);
  layout.frame = {{0, bytes}};
  return true;
}

}  // namespace penstock::data
