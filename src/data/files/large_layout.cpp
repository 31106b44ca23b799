// What decides the layout of a large file is its frame: all bytes that are no payload, or the first of them where they
// say it all.
//
//   .npy, .safetensors   |#header#|  payload ...                       |   and the size of the file
//   .pt, .npz            |#records#| payload |#record#| payload |#directory#|
//
// A file that has the size of an earlier one is taken to have its layout, as long as all files of that size had one
// layout. Its frame is read together with its payload, in one call, and compared then (LargeFile::read). Where files of
// one size have several layouts, the frame is read first.

#include "data/files/large_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "archive/archive_state.h"
#include "format/format.h"
#include "io/file/file_version.h"
#include "io/source/own_read.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Beyond this all are forgotten and learnt anew.
constexpr std::size_t kMostBytes = std::size_t{8} << 20;
/// Files of one size that are all different (each with an identity of its own) are not worth remembering.
constexpr std::size_t kMostOfOneSize = 256;
/// A frame that is larger takes longer to read and compare than to parse.
constexpr std::uint64_t kMostFrame = std::uint64_t{1} << 20;
/// Headers are mostly shorter.
constexpr std::uint64_t kUsualHead = 4096;

void read_frame(const ByteSource& source, std::span<const FileRange> frame, std::byte* image) {
  for (const FileRange& range : frame) {
    io::read_own(source, range.begin, {image + range.begin, static_cast<std::size_t>(range.bytes())});
  }
}

std::uint64_t bytes_of(std::span<const FileRange> frame) {
  std::uint64_t out = 0;
  for (const FileRange& range : frame) out += range.bytes();
  return out;
}

/// Whether LargeFile can read all of the sample that lies in the file as it is.
bool lies_plain(const LargeLayout& layout) {
  return std::all_of(layout.sample.entries.begin(), layout.sample.entries.end(), [&](std::uint32_t e) {
    const TensorEntry& entry = layout.entries[e];
    const TensorLayout tensor(entry.dtype, entry.shape, entry.strides);
    return tensor.nbytes == 0 || (entry.encoding.is_plain() && tensor.contiguous);
  });
}

/// All bytes but those of tensors: of each storage, those before its first tensor are no payload.
std::vector<FileRange> frame_of(const LargeLayout& layout) {
  std::vector<FileRange> payload;
  for (const StorageEntry& storage : layout.storages) {
    payload.push_back({storage.offset + storage.nbytes, storage.offset + storage.nbytes});
  }
  for (const TensorEntry& entry : layout.entries) {
    FileRange& range = payload[entry.storage];
    range.begin = std::min(range.begin, layout.storages[entry.storage].offset + entry.byte_offset);
  }
  std::sort(payload.begin(), payload.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<FileRange> out;
  std::uint64_t at = 0;
  for (const FileRange& range : payload) {
    if (range.begin > at) out.push_back({at, range.begin});
    at = std::max(at, range.end);
  }
  if (layout.file_bytes > at) out.push_back({at, layout.file_bytes});
  return out;
}

}  // namespace

bool LargeLayout::begins(std::span<const std::byte> image) const {
  return !head.empty() && std::memcmp(image.data(), head.data(), head.size()) == 0;
}

bool LargeLayout::lies_at(std::span<const format::StorageLocation> locations) const {
  return std::equal(locations.begin(), locations.end(), storages.begin(), storages.end(),
                    [](const auto& location, const auto& storage) { return location.offset == storage.offset; });
}

bool LargeLayout::matches(std::span<const std::byte> image, std::string_view path, bool verify,
                          std::vector<format::StorageLocation>& locations) const {
  locations.clear();
  if (!directory) return begins(image);
  try {
    // What was left out of the frame is what holds the tensors, and nothing else.
    return directory->matches(image, path, verify, locations) && lies_at(locations);
  } catch (const Error&) {
    return false;  // parsing says what is wrong
  }
}

LargeLayouts::Found LargeLayouts::find(const penstock::Source& source, std::span<const std::string> keys,
                                       const Work& work) {
  const auto at = by_size_.find(source.size());
  if (at != by_size_.end()) {
    const Known& known = at->second;
    // A sample without tensors would never be read, and so never be found out.
    if (work.guesses.allowed() && known.size() == 1 && known.front() && !known.front()->sample.entries.empty()) {
      work.guesses.assume();
      return {known.front(), true};
    }
    std::vector<format::StorageLocation> locations;
    if (LargeLayoutPtr found = recognise(known, *source, work, locations)) {
      return {std::move(found), false, std::move(locations)};
    }
  }
  return parse(source, keys, work);
}

// Files of one size and different layouts have frames of equal places mostly: tensors of another type or order, or
// other labels. Those of other places are parsed.
LargeLayoutPtr LargeLayouts::recognise(const Known& known, const ByteSource& source, const Work& work,
                                       std::vector<format::StorageLocation>& locations) {
  const auto newest = std::find_if(known.rbegin(), known.rend(), [](const auto& layout) { return layout != nullptr; });
  if (newest == known.rend()) return nullptr;
  const LargeLayout& expected = **newest;
  std::byte* const bytes = SparseImage::of(work.scratch).prepare(expected.image_bytes(), expected.frame);
  if (bytes == nullptr) return nullptr;
  const std::span<const std::byte> image(bytes, static_cast<std::size_t>(expected.image_bytes()));
  try {
    read_frame(source, expected.frame, bytes);
    work.figures.stats.read_bytes += bytes_of(expected.frame);
    const format::DirectoryLayoutPtr directory = find_directory(image, source.name(), work.call.verify, locations);
    for (auto it = newest; it != known.rend(); ++it) {
      const LargeLayout* const layout = it->get();
      if (layout == nullptr || layout->directory != directory || layout->frame != expected.frame) continue;
      if (directory ? layout->lies_at(locations) : layout->begins(image)) return *it;
    }
  } catch (const Error&) {
    // Opening it says what is wrong.
  }
  return nullptr;
}

format::DirectoryLayoutPtr LargeLayouts::find_directory(std::span<const std::byte> image, std::string_view path,
                                                        bool verify,
                                                        std::vector<format::StorageLocation>& locations) const {
  for (const auto& [format, cache] : caches_) {
    if (auto directory = cache->find(image, path, verify, locations)) return directory;
  }
  return nullptr;
}

LargeLayouts::Found LargeLayouts::parse(const penstock::Source& source, std::span<const std::string> keys,
                                        const Work& work) {
  const Archive archive = open(source, {.verify = work.call.verify});
  ++work.figures.stats.files_parsed;
  auto layout = std::make_shared<LargeLayout>();
  layout->file_bytes = source.size();
  layout->entries.assign(archive.entries().begin(), archive.entries().end());
  layout->storages.assign(archive.storages().begin(), archive.storages().end());
  layout->sample = file_sample(archive.structure(), layout->entries, keys, work.scratch.structures);
  keep(source.size(), learn(archive, *layout, work.call.verify, work.scratch) ? layout : nullptr);
  return {std::move(layout), false, {}, {archive.sources().begin() + 1, archive.sources().end()}};
}

bool LargeLayouts::learn(const Archive& archive, LargeLayout& layout, bool verify, Scratch& scratch) {
  const auto known = by_size_.find(layout.file_bytes);
  if (known != by_size_.end() && known->second.size() >= kMostOfOneSize) return false;
  if (archive.sources().size() != 1 || !lies_plain(layout)) return false;
  try {
    const format::Format& format = *detail::ArchiveState::of(archive).format;
    const bool learnt = format.fingerprint != nullptr       ? learn_head(archive, layout)
                        : format.directory_cache != nullptr ? learn_directory(archive, layout, verify, scratch)
                                                            : false;
    if (learnt && io::look_at(*archive.sources().front()) == io::FileState::kAsOpened) return true;
  } catch (const Error&) {
    // Whoever reads it next says what is wrong.
  }
  layout.frame.clear();
  return false;
}

bool LargeLayouts::learn_head(const Archive& archive, LargeLayout& layout) const {
  const ByteSource& source = *archive.sources().front();
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  layout.head.resize(static_cast<std::size_t>(std::min(kUsualHead, source.size())));
  io::read_own(source, 0, layout.head);
  const std::uint64_t bytes = state.format->fingerprint(state.index, layout.head);
  if (bytes == 0 || bytes > std::min(kMostFrame, source.size())) return false;
  const bool is_longer = bytes > layout.head.size();
  layout.head.resize(static_cast<std::size_t>(bytes));
  if (is_longer) io::read_own(source, 0, layout.head);
  layout.frame = {{0, bytes}};
  return true;
}

bool LargeLayouts::learn_directory(const Archive& archive, LargeLayout& layout, bool verify, Scratch& scratch) {
  const bool all_stored = std::all_of(layout.storages.begin(), layout.storages.end(),
                                      [](const StorageEntry& storage) { return storage.lies_in_file(); });
  if (!all_stored) return false;
  layout.frame = frame_of(layout);
  if (bytes_of(layout.frame) > kMostFrame) return false;
  std::byte* const bytes = SparseImage::of(scratch).prepare(layout.file_bytes, layout.frame);
  if (bytes == nullptr) return false;
  const std::span<const std::byte> image(bytes, static_cast<std::size_t>(layout.file_bytes));
  read_frame(*archive.sources().front(), layout.frame, bytes);
  const format::Format& format = *detail::ArchiveState::of(archive).format;
  std::unique_ptr<format::DirectoryCache>& cache = caches_[&format];
  if (!cache) cache = format.directory_cache();
  std::vector<format::StorageLocation> locations;
  layout.directory = cache->locate(image, archive.path(), {.verify = verify}, locations);
  return layout.directory && layout.directory->index().entries.size() == layout.entries.size() &&
         layout.matches(image, archive.path(), verify, locations);
}

void LargeLayouts::keep(std::uint64_t file_bytes, const LargeLayoutPtr& layout) {
  known_bytes_ += sizeof(LargeLayout) + sizeof(Known);
  if (layout) {
    known_bytes_ += layout->head.size() + layout->entries.size() * (sizeof(TensorEntry) + sizeof(StorageEntry));
  }
  if (known_bytes_ > kMostBytes) {
    by_size_.clear();
    known_bytes_ = 0;
  }
  Known& known = by_size_[file_bytes];
  // One place is enough for all that need parsing.
  if (layout || std::find(known.begin(), known.end(), nullptr) == known.end()) known.push_back(layout);
}

}  // namespace penstock::data
